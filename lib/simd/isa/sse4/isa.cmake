headlight_define_isa(sse4 PROCESSORS x86_64|AMD64 HIGHWAY HWY_SSE4 FLAGS -msse4.2)
