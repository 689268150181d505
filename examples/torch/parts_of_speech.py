#!/usr/bin/env python3
"""Guesses a word's part of speech from its letters: runs of two to five letters are ids of an embedding
bag, whose rows live in tables on servers, and a small network, whose optimizer does, too.

usage: dtrain-run -n WORKERS [-s SERVERS] -- parts_of_speech.py [--epochs N] [--alone]
--alone: the same model with torch.nn.EmbeddingBag and torch.optim in one process, without dtrain.
The words are those of WordNet (Debian: wordnet-base) with one part of speech; a tenth of them is left
out of training, and the score is the mean over the four kinds of how many of these are right.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import pathlib
import sys
import time
import zlib

import torch
from torch import nn
from torch.nn import functional

FOLDER = pathlib.Path("/usr/share/wordnet")
KINDS = ("noun", "verb", "adj", "adv")
BUCKETS, DIM, HIDDEN, BATCH = 1 << 18, 24, 48, 512
ROWS = {"rule": "adagrad", "learning_rate": 0.15}
DENSE = {"rule": "adam", "steps": "table", "lr": 2e-3}


def read_words():
    """[(word, kind)], each word once, in an order without a pattern"""
    kinds = {}
    for number, kind in enumerate(KINDS):
        for line in (FOLDER / f"index.{kind}").read_text(encoding="utf-8").splitlines():
            word = line.split(" ", 1)[0]
            if word.isalpha():  # neither the licence's lines nor several words
                kinds.setdefault(word, set()).add(number)
    words = [(word, next(iter(found))) for word, found in kinds.items() if len(found) == 1]
    return sorted(words, key=lambda entry: zlib.crc32(entry[0].encode()))


def parts(word):
    """The ids of its runs of letters."""
    word = f"<{word}>"
    return [zlib.crc32(word[at:at + size].encode()) % BUCKETS
            for size in range(2, 6) for at in range(len(word) - size + 1)]


class Data:
    """Words as ids: `ids` of all words one after the other, and where each begins."""

    def __init__(self, words):
        self.kinds = torch.tensor([kind for _, kind in words])
        ids = [parts(word) for word, _ in words]
        self.ids = torch.tensor([number for one in ids for number in one])
        self.ends = torch.tensor([len(one) for one in ids]).cumsum(0)
        self.starts = torch.cat([torch.zeros(1, dtype=torch.int64), self.ends[:-1]])

    def batches(self, first, step):
        """(ids, offsets, kinds) of every step-th batch from `first` on"""
        for begin in range(first * BATCH, len(self.kinds), step * BATCH):
            end = min(begin + BATCH, len(self.kinds))
            start = self.starts[begin]
            yield self.ids[start:self.ends[end - 1]], self.starts[begin:end] - start, self.kinds[begin:end]


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(DIM, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, len(KINDS)))


def train(data, epochs, bag, net, step, prefetch, rank, size):
    """Words of each kind count equally, though most words are nouns."""
    weights = 1 / torch.bincount(data.kinds, minlength=len(KINDS)).float()
    weights *= len(KINDS) / weights.sum()
    # All workers make as many steps, because the optimizer waits for all.
    steps = len(data.kinds) // BATCH // size
    for _ in range(epochs):
        batches = list(data.batches(rank, size))[:steps]
        for (ids, offsets, kinds), (later, _, _) in zip(batches, batches[1:] + batches[:1]):
            prefetch(later)  # while this batch is computed
            loss = functional.cross_entropy(net(bag(ids, offsets)), kinds, weights)
            step(loss)
    return steps * epochs * BATCH * size


def score(data, bag, net):
    right, all_words = torch.zeros(len(KINDS)), torch.zeros(len(KINDS))
    with torch.no_grad():
        for ids, offsets, kinds in data.batches(0, 1):
            guesses = net(bag(ids, offsets)).argmax(1)
            all_words += torch.bincount(kinds, minlength=len(KINDS))
            right += torch.bincount(kinds[guesses == kinds], minlength=len(KINDS))
    return float((right / all_words).mean())


def run_alone(training, test, epochs):
    bag, net = nn.EmbeddingBag(BUCKETS, DIM, sparse=True), network()
    with torch.no_grad():
        bag.weight.zero_()
    optimizers = [torch.optim.Adagrad(bag.parameters(), lr=ROWS["learning_rate"]),
                  torch.optim.Adam(net.parameters(), lr=DENSE["lr"])]

    def step(loss):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()

    begin = time.monotonic()
    words = train(training, epochs, bag, net, step, lambda ids: None, 0, 1)
    return words / (time.monotonic() - begin), score(test, bag, net)


def run_together(training, test, epochs, context):
    from dtrain.torch import DistributedOptimizer, EmbeddingBag
    world, net = context.world, network()
    bag = EmbeddingBag(world, BUCKETS, DIM, name="parts of words", **ROWS)
    optimizer = DistributedOptimizer(net.parameters(), world, name="network", **DENSE)

    def step(loss):
        optimizer.zero_grad()
        loss.backward()  # pushes the rows' gradients
        optimizer.step()

    begin = time.monotonic()
    words = train(training, epochs, bag, net, step, bag.prefetch, world.rank, world.size)
    bag.flush()
    world.barrier()
    speed = words / (time.monotonic() - begin)
    result = score(test, bag, net) if world.rank == 0 else 0
    world.barrier()
    return speed, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--words", type=int, default=None, help="train with this many words only")
    parser.add_argument("--least", type=float, default=0, help="fail if the score is less")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if not (FOLDER / "index.noun").exists():
        sys.exit("parts_of_speech: WordNet is needed: apt install wordnet-base")
    words = read_words()
    test, training = Data(words[::10]), Data([word for i, word in enumerate(words) if i % 10][:given.words])
    if given.alone:
        rank, name = 0, "alone"
        speed, result = run_alone(training, test, given.epochs)
    else:
        import dtrain
        with dtrain.Context() as context:
            rank, name = context.rank, f"{context.world.size} workers"
            speed, result = run_together(training, test, given.epochs, context)
    if rank == 0:
        print(f"{name}: {speed:.0f} words/s, score {100 * result:.1f} %", flush=True)
        if result < given.least:
            sys.exit(f"parts_of_speech: the score is below {100 * given.least:.0f} %")


if __name__ == "__main__":
    main()
