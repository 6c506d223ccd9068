"""The structs of headlight's C interface, as ctypes lays them out; tests/bench/peer_types.py holds them to the headers."""

import ctypes


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


class Indices(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int32), ("message", ctypes.c_char * 1012), ("bytes", ctypes.c_uint64)]


class EngineOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("isa", ctypes.c_int32),
        ("spin_microseconds", ctypes.c_void_p), ("executor", ctypes.c_void_p),
        ("features", ctypes.c_void_p),
    ]  # fmt: skip


class AttentionOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("causal", ctypes.c_int32), ("align", ctypes.c_int32),
        ("window", ctypes.POINTER(ctypes.c_int64 * 2)), ("chunk", ctypes.c_int64), ("query_lengths", Indices),
        ("key_lengths", Indices), ("query_offsets", Indices), ("key_offsets", Indices), ("query_start", Indices),
        ("key_start", Indices), ("mask", ctypes.POINTER(Tensor)),
        ("bias", ctypes.c_void_p), ("scale", ctypes.c_void_p), ("log_sum_exp", ctypes.POINTER(Tensor)),
        ("probabilities", ctypes.c_void_p), ("dropout", ctypes.c_void_p), ("soft_cap", ctypes.c_void_p),
        ("slopes", ctypes.POINTER(Tensor)), ("sinks", ctypes.c_void_p), ("scores", ctypes.c_void_p), ("mask_means", ctypes.c_int32),
        ("scores_at", ctypes.c_int32),
    ]  # fmt: skip


class LoadModelOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("precision", ctypes.c_int32)]


class Dropout(ctypes.Structure):
    _fields_ = [("probability", ctypes.c_float), ("stream", ctypes.c_uint32), ("seed", ctypes.c_uint64)]


class AttentionGradients(ctypes.Structure):
    """As far as these cases need it: a struct tells its size, and what lies behind is left at its default."""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [(name, ctypes.POINTER(Tensor)) for name in ("query", "key", "value")]


# What each is called in C.
STRUCTS = {
    "headlight_tensor": Tensor, "headlight_indices": Indices, "headlight_error": Error, "headlight_engine_options": EngineOptions,
    "headlight_attention_options": AttentionOptions, "headlight_dropout": Dropout, "headlight_attention_gradients": AttentionGradients,
    "headlight_load_model_options": LoadModelOptions,
}  # fmt: skip
