#!/usr/bin/env python3
"""headlight and its peers side by side, in one process, taking turns.

  bench/peers/run --threads 1,2 --filter 'attention/causal.*' --output rows.jsonl

Every result is checked against float64 before it is timed. Of each peer the fastest variant that is right takes part.
"""

import argparse
import importlib
import json
import os
import re
import sys
import warnings

import cases

PEERS = {"pytorch": "pytorch_peer", "onnxruntime": "onnxruntime_peer", "openvino": "openvino_peer"}
# Of an element over its row's norm. float32 stays ten times below its limit, bfloat16 is ten times above. Of bfloat16 two units of roundoff.
# int8 only has to bear a likeness, for peers differ in what they lose: each row says how much.
ERROR_LIMITS = {"float32": 1e-5, "bfloat16": 2.0**-7, "int8": 0.1}
DISTURBING_CORES = 0.05
# Takes part only where the filter names it: a call of its largest cases lasts many seconds.
ON_REQUEST = "families"
# About 100 µs. By default a thread of PyTorch spins much longer, and where its partner waits for the same core every call takes milliseconds.
OPENMP_SPINS = "2000"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the cases and stop; needs nothing installed")
    parser.add_argument("--quick", action="store_true", help="a dozen small cases")
    parser.add_argument("--filter", default="", help="regular expression on suite/case")
    parser.add_argument("--threads", default="1,2", help="thread counts (default 1,2)")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"which of {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5, help="turns that everybody gets in a case (default 5)")
    parser.add_argument("--layers", type=int, default=0, help="only the first so many layers of each family (default all)")
    parser.add_argument("--output", default="build/peers/rows.jsonl", help="one JSON row a line, appended as they come")
    parser.add_argument("--verbose", action="store_true", help="tell every variant's time and error, and why one is left out")
    return parser.parse_args()


def chosen_cases(options):
    for case in cases.all_cases(options.layers):
        asked = options.list or case.suite != ON_REQUEST or ON_REQUEST in options.filter
        if asked and (case.quick or not options.quick) and re.search(options.filter, f"{case.suite}/{case.name}"):
            yield case


def without_missing(chosen):
    """Less the suite that wants a package which is not here."""
    if not any(case.suite == ON_REQUEST for case in chosen):
        return chosen
    try:
        importlib.import_module(ON_REQUEST)
    except ImportError as error:
        print(f"{ON_REQUEST} is left out: {error}", file=sys.stderr)
        return [case for case in chosen if case.suite != ON_REQUEST]
    return chosen


def import_peers(options):
    """Those that are installed. OpenMP reads its settings when PyTorch is loaded, so they are set before."""
    os.environ["OMP_NUM_THREADS"] = str(max(map(int, options.threads.split(","))))
    os.environ["GOMP_SPINCOUNT"] = OPENMP_SPINS
    found = [importlib.import_module("headlight_peer")]
    for name in filter(None, options.peers.split(",")):
        try:
            found.append(importlib.import_module(PEERS[name]))
        except (ImportError, OSError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return found


def right_variants(peer, problem, tell):
    """Builds a peer's variants, runs each once and keeps those with the right result."""
    import timing

    kinds = {"gemm": "gemm", "minilm": "encoder", "families": "family", "attention_backward": "attention_training",
             "training": "layer_training"}  # fmt: skip
    variants = getattr(peer, kinds.get(problem.case.suite, "attention"), None)
    for variant, make in variants(problem) if variants else ():
        try:
            run, result = make()
            run()
            error = problem.error(result())
        except Exception as refusal:  # of whatever type a peer's library throws
            tell(f"  {peer.NAME}, {variant}: refused: {str(refusal).splitlines()[0][:150]}")
            continue
        if error < ERROR_LIMITS[getattr(problem.case, "type", "float32")]:
            yield timing.Contestant(peer.NAME, variant, run, result, error)
        else:
            tell(f"  {peer.NAME}, {variant}: left out, error {error:.1e}")


def compare(case, threads, rounds, peers, tell):
    """Rows of one case: one for each peer that can do it."""
    import problem as problems
    import timing

    problem = problems.make(case)
    contestants, versions = [], {}
    for peer in peers:
        peer.start(threads)
        variants = list(right_variants(peer, problem, tell))
        if variants:
            versions[peer.NAME] = peer.version()
            contestants.append(timing.best_of(variants, tell))
    if not contestants or contestants[0].peer != peers[0].NAME:
        raise SystemExit(f"{case.suite}/{case.name}: headlight has no right result")
    others = timing.alternate(contestants, rounds)
    ours = contestants[0]
    for other in contestants:
        yield {
            "suite": case.suite, "case": case.name, "peer": other.peer, "variant": other.variant, "version": versions[other.peer],
            "threads": threads, "seconds_best": other.best, "seconds_median": other.median, "ours_seconds_best": ours.best,
            "ours_seconds_median": ours.median, "worst_error": other.error, "operations": case.operations,
            "others_cores": others,
        }  # fmt: skip


def print_case(case, threads, rows, names):
    """One line of the table: microseconds, ours in GFLOP/s, and the best peer's time over ours."""
    found = {row["peer"]: row for row in rows}
    best = {name: row["seconds_best"] for name, row in found.items()}
    ours = best.pop(names[0])
    line = f"{case.suite + '/' + case.name:<56}{threads:>2}{ours * 1e6:12.1f}{case.operations / ours * 1e-9:9.1f}"
    line += "".join(f"{best[name] * 1e6:14.1f}" if name in best else f"{'-':>14}" for name in names[1:])
    line += f"{min(best.values()) / ours:11.2f}" if best else ""
    if getattr(case, "type", "float32") != "float32":
        line += "  errors " + ", ".join(f"{name} {row['worst_error']:.1e}" for name, row in found.items())
    others = rows[0]["others_cores"]
    line += f"  disturbed: others used {others:.2f} cores" if others > DISTURBING_CORES else ""
    print(line, flush=True)


def main():
    options = arguments()
    chosen = list(chosen_cases(options))
    if options.list:
        for case in chosen:
            print(f"{case.suite + '/' + case.name:<56}{case.operations * 1e-9:9.4f} GFLOP")
        return
    warnings.simplefilter("ignore")
    peers = import_peers(options)
    chosen = without_missing(chosen)
    import timing

    names = [peer.NAME for peer in peers]
    tell = print if options.verbose else lambda line: None
    print(f"{'best of each, microseconds':<54}{'thr.':>4}{names[0]:>12}{'GFLOP/s':>9}" + "".join(f"{n:>14}" for n in names[1:]) + "  best/ours")
    with open(options.output, "a", encoding="utf-8") as output:
        for threads in map(int, options.threads.split(",")):
            for case in chosen:
                try:
                    rows = list(compare(case, threads, options.rounds, peers, tell))
                except timing.NotSettling as error:
                    print(f"{case.suite}/{case.name} is left out: {error}", file=sys.stderr)
                    continue
                print_case(case, threads, rows, names)
                output.writelines(json.dumps(row) + "\n" for row in rows)
                output.flush()


if __name__ == "__main__":
    main()
