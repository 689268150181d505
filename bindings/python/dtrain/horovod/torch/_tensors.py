"""Tensors as what operations of the library use: dense, contiguous, in the memory of the host.

SPDX-License-Identifier: Apache-2.0
"""
# mypy: disable-error-code="no-any-return"
from typing import Any, Dict, Optional, Tuple

from ..._optional import need
from ..common._request import DTYPES, MOST_DIMENSIONS

torch: Any = need("torch", "dtrain.horovod.torch")
Tensor: Any = torch.Tensor

INTEGERS = frozenset(("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"))
NARROW = frozenset(("float16", "bfloat16"))  #: scaled in float32
FLOATS = frozenset(("float32", "float64")) | NARROW
COMPLEX = frozenset(("complex64", "complex128"))
NUMBERS = INTEGERS | FLOATS | COMPLEX


_names: Dict[Any, str] = {}


def dtype_name(tensor: Any) -> str:
    name = _names.get(tensor.dtype)
    if name is None:
        name = _names[tensor.dtype] = str(tensor.dtype).rpartition(".")[2]
    return name


def checked(tensor: Any, numbers: bool) -> None:
    """Refuses what no rank can send. numbers: it will be computed with."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"a tensor is needed, not {type(tensor).__name__}")
    name = dtype_name(tensor)
    if tensor.layout != torch.strided or name not in (NUMBERS if numbers else DTYPES[:-1]):
        raise ValueError(f"Tensor type {tensor.type()} is not supported.")
    if tensor.dim() > MOST_DIMENSIONS:
        raise ValueError(f"a tensor of {tensor.dim()} dimensions; at most {MOST_DIMENSIONS} are possible")


def on_host(tensor: Any) -> Any:
    """Its values, contiguous, in the host's memory: the tensor itself if possible."""
    plain = tensor.detach()
    if plain.is_conj():
        plain = plain.resolve_conj()
    if plain.is_neg():
        plain = plain.resolve_neg()
    return plain.cpu().contiguous()


def same_memory(a: Any, b: Any) -> bool:
    return a.device == b.device and a.data_ptr() == b.data_ptr()


def as_numbers(tensor: Any) -> Any:
    """A view of a contiguous tensor, of which elements can be added."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def as_bytes(tensor: Any) -> Any:
    """A view of a contiguous tensor, of which elements can be moved."""
    return tensor.reshape(-1).view(torch.uint8)


def row_bytes(tensor: Any) -> int:
    """Of one index of the first dimension."""
    rows: int = tensor.shape[0]
    return tensor.numel() * tensor.element_size() // rows if rows else trailing(tensor.shape) * tensor.element_size()


def trailing(shape: Tuple[int, ...]) -> int:
    count = 1
    for length in shape[1:]:
        count *= length
    return count


def scaled(tensor: Any, factor: float, out: Optional[Any] = None) -> Any:
    """tensor * factor, as Horovod computes it: of integers in float64, toward zero; of 16-bit floats in float32."""
    name = dtype_name(tensor)
    if name in INTEGERS:
        found = tensor.double().mul_(factor)
    elif name in NARROW:
        found = tensor.float().mul_(factor)
    else:
        return torch.mul(tensor, factor, out=out) if out is not None else tensor * factor
    return out.copy_(found) if out is not None else found.to(tensor.dtype)
