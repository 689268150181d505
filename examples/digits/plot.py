"""Loss against time as an SVG drawing: linear time, logarithmic loss.

SPDX-License-Identifier: Apache-2.0
"""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 78, 30, 56, 64  # margins around the axes
COLOURS = ["#1b1b1b", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"]  # Okabe and Ito


def text(x, y, content, anchor="middle", size=14, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" {extra}>'
            f'{escape(content)}</text>')


def line(x1, y1, x2, y2, color="#d8d8d8", width=1.0):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{color}" stroke-width="{width}"/>')


def time_ticks(longest):
    """About six round steps from 0 to beyond `longest`."""
    rough = longest / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough)
    return [i * step for i in range(math.ceil(longest / step) + 1)]


def loss_ticks(lowest, highest):
    """1, 2, 5 in every decade, from the last one below to the first one above."""
    decades = range(math.floor(math.log10(lowest)) - 1, math.ceil(math.log10(highest)) + 2)
    ticks = sorted(m * 10.0**d for d in decades for m in (1, 2, 5))
    first = max(i for i, t in enumerate(ticks) if t <= lowest)
    last = min(i for i, t in enumerate(ticks) if t >= highest)
    return ticks[first:last + 1]


def axes(x, y, xticks, yticks, x_label, y_label):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = []
    for tick in xticks:
        out += [line(x(tick), TOP, x(tick), bottom), text(x(tick), bottom + 20, f"{tick:g}")]
    for tick in yticks:
        out += [line(LEFT, y(tick), right, y(tick)),
                text(LEFT - 8, y(tick) + 5, f"{tick:g}", "end")]
    out += [line(LEFT, bottom, right, bottom, "#1b1b1b", 1.5),
            line(LEFT, TOP, LEFT, bottom, "#1b1b1b", 1.5),
            text((LEFT + right) / 2, HEIGHT - 16, x_label, size=15)]
    middle = (TOP + bottom) / 2
    out.append(text(22, middle, y_label, size=15, extra=f'transform="rotate(-90 22 {middle:.1f})"'))
    return out


def legend(names):
    width, height = 66 + 8 * max(map(len, names)), 24
    x, y = WIDTH - RIGHT - width - 14, TOP + 14
    out = [f'<rect x="{x}" y="{y}" width="{width}" height="{height * len(names) + 12}" rx="4" '
           'fill="#ffffff" fill-opacity="0.9" stroke="#b0b0b0"/>']
    for i, name in enumerate(names):
        row = y + 18 + i * height
        out += [line(x + 12, row, x + 42, row, COLOURS[i % len(COLOURS)], 2.5),
                text(x + 52, row + 5, name, "start")]
    return out


def loss_over_time(title, curves):
    """curves: {name: [(seconds, loss), ...]}; returns the SVG text."""
    times = [t for curve in curves.values() for t, _ in curve]
    losses = [v for curve in curves.values() for _, v in curve]
    xticks, yticks = time_ticks(max(times)), loss_ticks(min(losses), max(losses))
    low, high = math.log(yticks[0]), math.log(yticks[-1])

    def x(seconds):
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / xticks[-1]

    def y(loss):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log(loss) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" fill="#1b1b1b">',
           '<rect width="100%" height="100%" fill="#ffffff"/>', text(WIDTH / 2, 32, title, size=18)]
    out += axes(x, y, xticks, yticks, "time (s)", "training loss")
    for i, curve in enumerate(curves.values()):
        points = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in curve)
        out.append(f'<polyline points="{points}" fill="none" stroke-width="2.5" '
                   f'stroke-linejoin="round" stroke="{COLOURS[i % len(COLOURS)]}"/>')
    return "\n".join(out + legend(list(curves)) + ["</svg>", ""])
