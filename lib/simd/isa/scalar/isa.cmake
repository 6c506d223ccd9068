# Plain C++, on every processor, whatever the SIMD library is.
headlight_define_isa(scalar LIBRARY simd/isa/scalar/vector-inl.h FLAGS -fno-tree-vectorize)
