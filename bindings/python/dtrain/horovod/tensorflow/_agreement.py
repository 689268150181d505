"""The comparison of ranks' calls that are no ops of TensorFlow: as that of ops (plugins/tensorflow/agreement.h), so a
rank in join() takes part.

SPDX-License-Identifier: Apache-2.0
"""
from array import array

from ..._communicator import Communicator
from ..._constants import Op
from ..common._request import has, ranks_text
from ..common.exceptions import RefusedError

JOINING = "join()"  #: what a rank in join() says
TEXT_BYTES = 512
MASK = (1 << 64) - 1


def hash_of(text: str) -> int:
    """FNV-1a, 64 bits."""
    found = 0xcbf29ce484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001b3 & MASK
    return found


def agree(comm: Communicator, call: str) -> None:
    """Fails on all ranks unless all make this call. The communicator stays usable."""
    extremes = array("Q", [hash_of(call), hash_of(call) ^ MASK])
    comm.allreduce(extremes, op=Op.MAX)
    if extremes[0] == extremes[1] ^ MASK:
        return
    found = bytearray(TEXT_BYTES * comm.size)
    comm.allgather(bytearray(call.encode()[:TEXT_BYTES - 1].ljust(TEXT_BYTES, b"\0")), found)
    texts = [found[at:at + TEXT_BYTES].split(b"\0")[0].decode(errors="replace")
             for at in range(0, len(found), TEXT_BYTES)]
    joined = [rank for rank, text in enumerate(texts) if text == JOINING]
    if joined:
        raise RefusedError(f"{call}: {ranks_text(joined)} {has(joined)} called join(); until all ranks have, only "
                           "all-reduces with Sum and Average can run. Run this operation before the first join(), or "
                           "after the last")
    other = next(rank for rank, text in enumerate(texts) if text != texts[0])
    raise RefusedError(f"{call}: ranks made different calls: rank 0: {texts[0]}; rank {other}: {texts[other]}")
