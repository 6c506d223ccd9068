// A shared library of C++ without headlight: what of the language's own library comes and goes with it.
extern "C" __attribute__((visibility("default"))) int throws_and_catches() {
  try {
    throw 1;
  } catch (int thrown) {
    return thrown;
  }
}
