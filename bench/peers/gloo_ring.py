"""Attention over ranks within PyTorch: a ring over gloo, beside which `headlight-mpi study scale` is held.

    python -m torch.distributed.run --nproc_per_node=2 bench/peers/gloo_ring.py [--length 16384] [--heads 4] [--rounds 3]

torch.distributed's own ring (context_parallel) has no kernels for CPUs (2.13: "_scaled_dot_product_flash_attention_for_cpu does not
have a sharding strategy registered"), so this is the ring that its users write: PyTorch's fused kernels on each block, partial results
merged by their log-sum-exps, the next block on its way meanwhile. Causal work is even: the sequence is cut into 2R chunks, and
rank r holds chunks r and 2R - 1 - r. One thread a rank unless told. The results are held against one process first; prints
the slowest rank's best time, forward and backward.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch.nn import functional

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
FURTHEST = 2e-5  # of the largest number of a result


def send_round(tensor):
    """Begins to send a block to the next rank; gives what comes from the one before, and what to wait for."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks == 1:
        return tensor, []
    coming = torch.empty_like(tensor)
    going = [dist.isend(tensor, (rank + 1) % ranks), dist.irecv(coming, (rank - 1) % ranks)]
    return coming, going


def visible(step, length):
    """Which of this rank's rows see which of the keys of the rank `step` before it: rows, keys, and whether causally."""
    rank = dist.get_rank()
    if step == 0:
        return slice(0, length), slice(0, length), True
    half = length // 2
    if step <= rank:  # keys of a lower rank: its first chunk lies before all rows here, its last behind them
        return slice(0, length), slice(0, half), False
    return slice(half, length), slice(0, length), False  # of a higher one: all of them before the last chunk here alone


def forward(query, key, value):
    keys = torch.stack([key, value])
    out = log_sum_exp = None
    for step in range(dist.get_world_size()):
        last = step + 1 == dist.get_world_size()
        coming, going = (None, []) if last else send_round(keys)
        rows, columns, causal = visible(step, query.shape[2])
        part, sums = FORWARD(query[:, :, rows], keys[0][:, :, columns], keys[1][:, :, columns], 0.0, causal)
        if step == 0:
            out, log_sum_exp = part, sums
        else:
            before = log_sum_exp[:, :, rows]
            both = torch.logaddexp(before, sums)
            out[:, :, rows] = out[:, :, rows] * (before - both).exp()[..., None] + part * (sums - both).exp()[..., None]
            log_sum_exp[:, :, rows] = both
        for request in going:
            request.wait()
        keys = coming
    return out, log_sum_exp


def backward(query, key, value, out, log_sum_exp, out_gradient):
    """Gradients of keys travel with them, one step behind, and end where they began."""
    keys = torch.stack([key, value])
    by_query = torch.zeros_like(query)
    by_keys = torch.zeros_like(keys)
    ranks = dist.get_world_size()
    for step in range(ranks):
        coming, going = (None, []) if step + 1 == ranks else send_round(keys)
        rows, columns, causal = visible(step, query.shape[2])
        one_query, one_key, one_value = BACKWARD(
            out_gradient[:, :, rows].contiguous(), query[:, :, rows].contiguous(), keys[0][:, :, columns].contiguous(),
            keys[1][:, :, columns].contiguous(), out[:, :, rows].contiguous(), log_sum_exp[:, :, rows].contiguous(), 0.0, causal)
        by_query[:, :, rows] += one_query
        by_keys[0][:, :, columns] += one_key
        by_keys[1][:, :, columns] += one_value
        for request in going:
            request.wait()
        keys = coming
        by_keys, going = send_round(by_keys)
        for request in going:
            request.wait()
    return by_query, by_keys[0], by_keys[1]


def rows_of(whole):
    """This rank's chunks."""
    chunks = whole.chunk(2 * dist.get_world_size(), dim=2)
    return torch.cat([chunks[dist.get_rank()], chunks[-1 - dist.get_rank()]], dim=2).contiguous()


def check(heads, head_dim):
    length = 128 * dist.get_world_size()
    whole = [torch.randn(1, heads, length, head_dim).requires_grad_() for _ in range(3)]
    by_out = torch.randn(1, heads, length, head_dim)
    expected = functional.scaled_dot_product_attention(*whole, is_causal=True)
    gradients = torch.autograd.grad(expected, whole, by_out)
    share = [rows_of(tensor.detach()) for tensor in whole]
    out, log_sum_exp = forward(*share)
    found = (out, *backward(*share, out, log_sum_exp, rows_of(by_out)))
    for one, other in zip(found, (expected.detach(), *gradients)):
        wanted = rows_of(other)
        assert (one - wanted).abs().max() <= FURTHEST * wanted.abs().max(), "the ring has other results than one process"


def best_of(rounds, work):
    best = float("inf")
    for _ in range(rounds):
        dist.barrier()
        begin = time.perf_counter()
        result = work()
        seconds = torch.tensor(time.perf_counter() - begin)
        dist.all_reduce(seconds, dist.ReduceOp.MAX)
        best = min(best, seconds.item())
    return best, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=16384)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--head-dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    check(arguments.heads, arguments.head_dim)

    share = [torch.randn(1, arguments.heads, arguments.length // dist.get_world_size(), arguments.head_dim) for _ in range(4)]
    query, key, value, by_out = share
    seconds, (out, log_sum_exp) = best_of(arguments.rounds, lambda: forward(query, key, value))
    seconds_backward, _ = best_of(arguments.rounds, lambda: backward(query, key, value, out, log_sum_exp, by_out))
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, L = {arguments.length}: forward {seconds * 1e3:.0f} ms, backward {seconds_backward * 1e3:.0f} ms")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
