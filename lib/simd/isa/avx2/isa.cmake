set(flags_avx2 -mavx2 -mfma -mbmi -mbmi2 -mf16c)
if(MINGW)
  # g++ takes the stack for more aligned than Windows keeps it (its bug 54412), so that a vector of 32 bytes laid there ends the program:
  # the assembler makes every move one that may be unaligned, which is as fast where the address is aligned after all.
  list(APPEND flags_avx2 -Wa,-muse-unaligned-vector-move)
endif()
headlight_define_isa(avx2 PROCESSORS x86_64|AMD64 HIGHWAY HWY_AVX2 FLAGS ${flags_avx2})

headlight_define_feature(avx_vnni OF avx2 FOR int8 FLAGS -mavxvnni)
