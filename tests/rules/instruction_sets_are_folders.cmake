# What differs between instruction sets lies in their folders in lib/simd/isa/: no kernel, and no file of lib/simd/ itself, chooses by the
# preprocessor. It asks kValues and kFeature (lib/simd/isa/values.h), or calls what the folder defines.
cmake_minimum_required(VERSION 3.25)

# FILE: what it may ask for, and why.
# The features that a family is compiled for.
set(allowed_in_lib/kernels/choose_isa.h "HEADLIGHT_FEATURES")
# Compilers have the intrinsics of tiles with their flags alone, and a test has its own in their place.
set(allowed_in_lib/kernels/gemm/amx_int4-inl.h "HEADLIGHT_AMX_SIGNED_PRODUCT")
set(allowed_in_lib/kernels/gemm/amx_block-inl.h "HEADLIGHT_AMX_PRODUCT")
set(allowed_in_lib/kernels/gemm/amx-inl.h "HEADLIGHT_AMX_PRODUCT|HEADLIGHT_TILE_INSTRUCTIONS")
set(allowed_in_lib/kernels/tile_registers-inl.h "HEADLIGHT_AMX_PRODUCT|HEADLIGHT_TILE_INSTRUCTIONS")
# What these libraries compute in another way than the vocabulary promises.
set(allowed_in_lib/simd/vector_highway-inl.h "HWY_ARCH_X86")
set(allowed_in_lib/simd/vector_xsimd-inl.h "__aarch64__|__AVX512F__|__FMA__")

set(looked_at 0)
file(GLOB files RELATIVE ${SOURCE} ${SOURCE}/lib/simd/*.h)
file(GLOB_RECURSE kernels RELATIVE ${SOURCE} ${SOURCE}/lib/kernels/*.h ${SOURCE}/lib/kernels/*.cc)
foreach(file IN LISTS files kernels)
  math(EXPR looked_at "${looked_at} + 1")
  file(STRINGS ${SOURCE}/${file} lines REGEX "^[ \t]*#[ \t]*(if|elif)")
  foreach(line IN LISTS lines)
    if(DEFINED allowed_in_${file} AND line MATCHES "^[ \t]*#[ \t]*(if|elif) (defined\\()?(${allowed_in_${file}})\\)?$")
      continue()
    endif()
    message(SEND_ERROR "${file}: ${line}")
  endforeach()
endforeach()
if(looked_at LESS 80)
  message(SEND_ERROR "looked at ${looked_at} files, expected more")
endif()
