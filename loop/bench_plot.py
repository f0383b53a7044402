"""Curves and points as inline SVG, without a library; colours come from the page's own style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

#: One colour a series, in their order; readable on paper and in the dark.
_COLOURS = (
    "#3569c8", "#1a7f4b", "#c0362c", "#9a6b00", "#7a4fbf", "#0f8a8a", "#b0468a", "#6b7280",
    "#8a5a2b", "#2f4f9f",
)  # fmt: skip
_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 168, 12, 42

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart, or single points.

    Attributes:
        bands: Lower and upper end at each point; empty for none.
        theory: What a formula gives at the same places, drawn as a broken line.
        dots: Points only, joined by nothing.
    """

    name: str
    points: tuple[Point, ...]
    bands: tuple[Point, ...] = ()
    theory: tuple[Point, ...] = ()
    dots: bool = False


def chart(series: Sequence[Series], *, title: str, x: str, y: str, log_x: bool = False) -> str:
    """A chart whose y runs from 0 to 1.

    Args:
        title: What it shows, for those who cannot see it.
        log_x: Tens of x are equally far from each other; x below 1 stands at 1.
    """
    xs = [place for each in series for place, _ in (*each.points, *each.theory)]
    scale = _Scale(max(xs, default=1.0), log_x)
    parts = [
        f'<svg role="img" aria-label="{escape(title)}" width="{_WIDTH}" height="{_HEIGHT}"'
        f' viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        *_axes(scale, x, y),
    ]
    for number, each in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        parts += _drawn(each, scale, colour)
        at = _TOP + 12 + 18 * number
        left = _WIDTH - _RIGHT + 14
        parts.append(f'<rect x="{left}" y="{at - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{left + 15}" y="{at}">{escape(each.name)}</text>')
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True, slots=True)
class _Scale:
    most: float
    log: bool

    def x(self, value: float) -> float:
        wide = _WIDTH - _LEFT - _RIGHT
        if not self.log:
            return _LEFT + wide * value / (self.most or 1.0)
        return _LEFT + wide * log10(max(value, 1.0)) / (log10(max(self.most, 10.0)))

    def y(self, value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - value)

    def ticks(self) -> list[float]:
        """Round numbers along x, ten at most.

        >>> _Scale(12, False).ticks(), _Scale(900, True).ticks()
        ([0, 2, 4, 6, 8, 10, 12], [1, 10, 100])
        """
        if self.log:
            return [10**power for power in range(floor(log10(max(self.most, 10.0))) + 1)]
        power = 10 ** floor(log10(self.most / 5)) if self.most > 0 else 1
        step = next(s * power for s in (1, 2, 5, 10) if self.most / (s * power) <= 8)
        step = ceil(step) if self.most >= 5 else step
        return [n * step for n in range(floor(self.most / step) + 1)]


def _axes(scale: _Scale, x: str, y: str) -> list[str]:
    parts = []
    right = _WIDTH - _RIGHT
    for share in (0, 0.25, 0.5, 0.75, 1):
        at = scale.y(share)
        parts.append(
            f'<line x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--line)"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for tick in scale.ticks():
        at = scale.x(tick)
        parts.append(
            f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{tick:g}</text>'
        )
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{escape(x)}</text>')
    parts.append(
        f'<text transform="translate(11 {scale.y(0.5):.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y)}</text>"
    )
    return parts


def _drawn(each: Series, scale: _Scale, colour: str) -> list[str]:
    parts = []
    for (x, _), (low, high) in zip(each.points, each.bands, strict=False):
        at = scale.x(x)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{scale.y(low):.1f}" y2="{scale.y(high):.1f}"'
            f' stroke="{colour}" stroke-opacity=".45" stroke-width="3"/>'
        )
    for points, dash in ((() if each.dots else each.points, ""), (each.theory, "5 4")):
        if points:
            places = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in points)
            parts.append(
                f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"'
                f' stroke-dasharray="{dash}"/>'
            )
    for x, y in each.points:
        parts.append(
            f'<circle cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="3" fill="{colour}">'
            f"<title>{escape(each.name)}: {x:g}, {y:.1%}</title></circle>"
        )
    return parts
