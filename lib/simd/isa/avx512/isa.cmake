headlight_define_isa(avx512 PROCESSORS x86_64|AMD64 HIGHWAY HWY_AVX3
  FLAGS ${headlight_flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)

headlight_define_feature(avx512_bf16 OF avx512 FOR bfloat16 EPILOGUE avx512_bf16 FLAGS -mavx512bf16)
headlight_define_feature(avx512_vnni OF avx512 FOR int8 FLAGS -mavx512vnni)
# Linux must be asked for tile registers (lib/runtime/tile_permission.h).
headlight_define_feature(amx_bf16 OF avx512 FOR bfloat16_tiles SYSTEM Linux EPILOGUE avx512_bf16 FLAGS -mavx512bf16 -mamx-tile -mamx-bf16)
headlight_define_feature(amx_int8 OF avx512 FOR int8_products SYSTEM Linux FLAGS -mavx512vnni -mamx-tile -mamx-int8)
