headlight_define_isa(neon PROCESSORS aarch64|arm64 HIGHWAY HWY_NEON FLAGS -march=armv8-a+crypto)

# -march as a whole: what the set has, and the feature.
headlight_define_feature(neon_i8mm OF neon FOR int8 FLAGS -march=armv8.2-a+crypto+dotprod+i8mm)
headlight_define_feature(neon_dotprod OF neon FOR int8 FLAGS -march=armv8.2-a+crypto+dotprod)
headlight_define_feature(neon_bf16 OF neon FOR bfloat16_products FLAGS -march=armv8.2-a+crypto+bf16)
