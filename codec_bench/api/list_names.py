"""List the names of one kind of thing (`codec-bench list`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codec_bench.api import benchmark_names
from codec_bench.api.metric_names import group_rows, metric_rows
from codec_bench.config.registry import doc_summary
from codec_bench.messages.errors import UnknownName, UserError

if TYPE_CHECKING:
    from codec_bench.codecs import CodecInfo, CodecRow

UNKNOWN = "unknown"
"""For facts that no source states."""


def list_names(what: str = "codecs", *, groups: bool = False, by: str | None = None) -> list[dict[str, Any]]:
    """List the names of one kind of thing with their facts.

    Args:
        what: `codecs`, `metrics`, `benchmarks`, `models`, `suites`, `prompts`, `rubrics`, `steps`, `features`, `rules`,
            `data`, `presets`, `recipes` or `plugins`.
        groups: list the groups of metrics in place of the metrics.
        by: order of metrics: `about`, `needs` or `cost`.

    Returns:
        A row for each name, as JSON values; `name` is in each.

    Raises:
        UnknownName: there is no such kind or order.
        UserError: groups or an order are for metrics only, and not for both.

    Examples:
        >>> from codec_bench import list_names
        >>> [row["name"] for row in list_names("data")]
        ['embedded', 'embedded-voices']
    """
    for is_set, option in ((groups, "--groups"), (by, "--by")):
        if is_set and what != "metrics":
            raise UserError(
                "option_for", options=[option], kind="metrics", requested=what, hint="codec-bench list metrics"
            )
    if groups and by:
        raise UserError("by_and_groups", hint="leave one of them out")
    return group_rows() if groups else metric_rows(by or "about") if what == "metrics" else _list_rows(what)


def _list_rows(kind: str) -> list[dict[str, Any]]:
    """Build the table rows of one kind, such as `codecs` or `rules`."""
    from codec_bench.config import config_names, read_config

    # Each list imports its own modules, because all of them together take longer than any list.
    if kind in benchmark_names.KINDS:
        return benchmark_names.list_rows(kind)
    if kind == "codecs":
        from codec_bench import codecs

        return [_codec_row(row) for row in codecs.list_codecs()]
    if kind == "features":
        from codec_bench import features

        return [_feature_row(n, p) for n, p in sorted(features.REGISTRY.table().items())]
    if kind == "rules":
        from codec_bench.text.rules import get_rule, rule_names

        rules = [get_rule(n) for n in rule_names()]
        return [
            {"name": r.name, "languages": list(r.languages) or "any", "over a set": r.aggregate, "what": r.summary}
            for r in rules
        ]
    if kind == "data":
        from codec_bench.data import REGISTERED, open_source

        return [{"name": n, "samples": len(open_source(n)), "folder": str(p)} for n, p in REGISTERED.items()]
    if kind in ("presets", "recipes"):
        room = kind.removesuffix("s")
        return [{"name": n, "summary": read_config(room, n)["summary"]} for n in config_names(room)]
    if kind == "plugins":
        from codec_bench.config import registry

        names = lambda plugin: ", ".join(n for table in plugin.tables.values() for n in table)  # noqa: E731
        return [{"name": p.name, "module": p.target, "adds": names(p), "error": p.error} for p in registry.plugins()]
    kinds = ["codecs", "metrics", "features", "rules", "data", "presets", "recipes", "plugins", *benchmark_names.KINDS]
    raise UnknownName("list", kind, kinds)


def _codec_row(row: Any) -> dict[str, Any]:
    """Describe a codec's rates, licences and weights as a table row."""
    info = row.info
    facts = {} if info is None else {
        "rates_hz": list(info.sample_rates_hz), "channels": list(info.channels), "frame_rate_hz": info.frame_rate_hz,
        "bitrate_bps": info.nominal_bitrate_bps, **token_facts(info), "code": info.code_licence,
        "weights": info.weights_licence,
    }  # fmt: skip
    of = {"family": row.family, "kind": row.kind, "from": row.source}
    return {"name": row.name, **of, **facts, **weights_facts(row), "points_kbps": row.points, "what": row.summary}


def token_facts(info: CodecInfo) -> dict[str, float | str | None]:
    """Tokens per second and bits per token as declared; none if continuous."""
    if info.latents:
        # All of the statistics would be imported for every list.
        from codec_bench.report.result_columns import NOT_DISCRETE

        return dict.fromkeys(("tokens_per_s", "bits_per_token"), NOT_DISCRETE)
    return {"tokens_per_s": info.tokens_per_s, "bits_per_token": info.bits_per_token}


def weights_facts(row: CodecRow) -> dict[str, str | int]:
    """Whether a codec's weights are downloaded, with revision and bytes, for a table."""
    here = {None: "", True: "here", False: "not here"}[row.weights_here]
    published = row.published
    return {
        "weights are": here,
        "weights_revision": "" if published is None else published.revision or UNKNOWN,
        "weights_bytes": "" if published is None else published.size or UNKNOWN,
    }


def _feature_row(name: str, path: str) -> dict[str, Any]:
    """Describe a feature as a table row; `path` is that of its class."""
    from codec_bench import features, weights

    try:
        feature = features.REGISTRY.resolve(name)
    except UserError as error:  # from a broken package; the other rows are not affected
        return {"name": name, "what": f"broken: {error.message}"}
    entries = [n for n in weights.checkpoint_names() if n == name or name in weights.checkpoint(n).used_by]
    here = "" if not entries else "here" if weights.lookup(entries[0]) else "not here"
    known = feature.languages_of(name) if hasattr(feature, "languages_of") else getattr(feature, "languages", ())
    languages = list(known) if len(known) < 6 else f"{len(known)}"
    summary = doc_summary(feature)
    return {"name": name, "languages": languages, "weights are": here, "what": summary, "code": path}
