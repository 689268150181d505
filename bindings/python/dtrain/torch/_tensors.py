"""Tensors as the arrays that operations use: in place where their memory allows it, else by copies, as are tensors of
GPUs: a copy waits for the current stream, in whose order the result is put back.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from ._torch import Tensor, attribute, torch

#: What the library computes with.
NUMBERS = frozenset(dtype for dtype in map(attribute, (
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64")) if dtype is not None)
#: What it only moves, as bytes.
OPAQUE = frozenset(dtype for dtype in map(attribute, (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")) if dtype is not None)


class Array(NamedTuple):
    """What a tensor travels as."""
    tensor: Any  #: contiguous
    finish: Optional[Callable[[], Any]] = None  #: when the operation has ended: puts results where they belong


def check(tensor: Any, name: str) -> None:
    """Refuses what no process of this backend can read."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name}: a tensor is needed, not {type(tensor).__name__}")
    if not tensor.is_cpu and not tensor.is_cuda:
        raise RuntimeError(f"{name}: dtrain has tensors of the CPU and of NVIDIA GPUs, not of device {tensor.device}; use "
                           "tensor.cpu()")
    if tensor.layout != torch.strided:
        raise RuntimeError(f"{name}: dtrain needs a dense tensor here, not one of layout {tensor.layout}; "
                           "only all-reduce takes sparse ones")
    if tensor.is_quantized or not (tensor.dtype in NUMBERS or tensor.dtype in OPAQUE or tensor.is_complex()
                                   or tensor.dtype == torch.bool):
        raise TypeError(f"{name}: dtrain cannot send tensors of {tensor.dtype}; send its bytes, by view(torch.uint8)")


def as_numbers(tensor: Any, name: str, summed: bool) -> Any:
    """A view of a contiguous tensor as numbers of the library."""
    if tensor.dtype in NUMBERS:
        return tensor
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    if summed and tensor.dtype in OPAQUE:
        raise TypeError(f"{name}: dtrain does not add tensors of {tensor.dtype}; convert them to torch.bfloat16")
    return tensor.view(torch.uint8)


def wire(tensor: Any, name: str, written: bool, summed: bool = False) -> Array:
    """written: the operation stores its result into the tensor. summed: it computes with the elements."""
    check(tensor, name)
    plain = tensor.detach() if tensor.requires_grad else tensor
    if not plain.is_cpu or not plain.is_contiguous() or plain.is_neg() or plain.is_conj():
        copy = torch.empty(plain.shape, dtype=plain.dtype, device="cpu").copy_(plain)
        finish = (lambda: plain.copy_(copy)) if written else None
        return Array(as_numbers(copy, name, summed), finish)
    return Array(as_numbers(plain, name, summed))


def consecutive(tensors: Sequence[Any]) -> bool:
    """Whether the tensors lie one after the other in one storage of the CPU, as the chunks of a tensor do."""
    at = tensors[0].data_ptr()
    base = storage_address(tensors[0])
    for tensor in tensors:
        if (not tensor.is_cpu or tensor.data_ptr() != at or not tensor.is_contiguous() or tensor.is_neg()
                or tensor.is_conj() or storage_address(tensor) != base):
            return False
        at += tensor.numel() * tensor.element_size()
    return True


storage_of: Any = getattr(Tensor, "untyped_storage", None) or Tensor._storage


def storage_address(tensor: Any) -> int:
    return storage_of(tensor).data_ptr()


def check_alike(tensors: Sequence[Any], name: str) -> None:
    for index, tensor in enumerate(tensors):
        check(tensor, f"{name}[{index}]")
        if tensor.dtype != tensors[0].dtype:
            raise ValueError(f"{name}[{index}]: {tensor.dtype}, but {name}[0] is {tensors[0].dtype}; all need one dtype")


def joined(tensors: Sequence[Any], name: str, written: bool, summed: bool = False) -> Array:
    """One array of all tensors, in their order: without a copy if they are consecutive. read: it has their values."""
    check_alike(tensors, name)
    tensors = [tensor.detach() for tensor in tensors]
    total = sum(tensor.numel() for tensor in tensors)
    if total != 0 and all(tensor.numel() != 0 for tensor in tensors) and consecutive(tensors):
        first = tensors[0]
        flat = first.as_strided((total,), (1,), first.storage_offset())
        return Array(as_numbers(flat, name, summed))
    flat = torch.empty(total, dtype=tensors[0].dtype, device="cpu")
    parts = flat.split([tensor.numel() for tensor in tensors])
    if not written:
        copy_parts(parts, tensors)
        return Array(as_numbers(flat, name, summed))
    return Array(as_numbers(flat, name, summed), lambda: return_parts(parts, tensors))


def copy_parts(parts: Sequence[Any], tensors: Sequence[Any]) -> None:
    for part, tensor in zip(parts, tensors):
        part.view(tensor.shape).copy_(tensor)


def return_parts(parts: Sequence[Any], tensors: Sequence[Any]) -> None:
    for part, tensor in zip(parts, tensors):
        tensor.copy_(part.view(tensor.shape))


def all_of(*finishes: Optional[Callable[[], Any]]) -> Optional[Callable[[], Any]]:
    wanted: List[Callable[[], Any]] = [finish for finish in finishes if finish is not None]
    if len(wanted) < 2:
        return wanted[0] if wanted else None

    def finish() -> None:
        for one in wanted:
            one()
    return finish
