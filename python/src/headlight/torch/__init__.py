"""What people of PyTorch call by its own names: attention, differentiable, and the modules made of it.

scaled_dot_product_attention() has torch.nn.functional's signature and meanings, MultiheadAttention and
TransformerEncoderLayer have torch.nn's parameters. Tensors lie on the CPU; torch.get_num_threads() threads compute.
"""

from headlight.torch._encoder_layer import TransformerEncoderLayer
from headlight.torch._functional import scaled_dot_product_attention
from headlight.torch._multi_head import MultiheadAttention

__all__ = ["MultiheadAttention", "TransformerEncoderLayer", "scaled_dot_product_attention"]
