"""The sharing configurations that a policy offers, each key read once a pass. Used by `assignments`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from gpushare.api.clusterpolicy import ClusterPolicy
from gpushare.api.parsing import ParsedSharing, parse_sharing
from gpushare.domain import manifests
from gpushare.domain.fractions import FractionMode, Isolation
from gpushare.domain.gpunode import Config, ConfigReason, ConfigSource
from gpushare.domain.manifests import ObjectKey
from gpushare.domain.pools import Strategy
from gpushare.plan import wording
from gpushare.plan.snapshot import ConfigMap, Settings, Snapshot

CONFIG_MAP_NOT_FOUND: Final = "ConfigMapNotFound"
KEY_NOT_FOUND: Final = "KeyNotFound"
INVALID: Final = "InvalidConfiguration"

# Between passes texts rarely change, and reading one costs milliseconds. Some clusters have a key for each node.
_parse = lru_cache(maxsize=4096)(parse_sharing)


def shares_by_mps(config: Config) -> bool:
    """Whether a configuration, once in force, needs MPS daemons on its node."""
    parsed, mode = _parse(config.content).config, fractions_of(config)
    return (parsed is not None and parsed.strategy is Strategy.MPS) or (
        mode is not None and mode.isolation is Isolation.MPS
    )


def fractions_of(config: Config) -> FractionMode | None:
    """How a configuration gives out fractions; None: not at all, or as whole MIG instances, for which nothing is to be done."""
    parsed = _parse(config.content).config
    mode = parsed.extension.fractions if parsed is not None else None
    return mode if mode is not None and mode.isolation is not Isolation.MIG else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a configuration cannot be used."""

    reason: str
    """One word for conditions."""
    text: str
    """What is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key, read."""

    config: Config
    """As a node would get it; without meaning when it is refused."""
    refusal: Refusal | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Catalog:
    """What `devicePlugin.config` names: one ConfigMap and its keys.

    Unlike a ConfigMap, it knows the policy too, so its entries are what a node gets.
    """

    settings: Settings
    policy: ClusterPolicy
    config_map: ConfigMap | None = None
    """None: there is none of that name here."""
    elsewhere: tuple[str, ...] = ()
    """Namespaces that have one of that name."""
    _entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """Where the ConfigMap has to be."""
        return self.settings.namespace

    @property
    def name(self) -> str:
        """Name of the ConfigMap; empty: nothing is shared."""
        return self.policy.device_plugin.config.name

    @property
    def key(self) -> ObjectKey:
        """The ConfigMap, whether or not it is there."""
        return ObjectKey(manifests.CONFIG_MAP, self.name, self.namespace)

    @property
    def title(self) -> str:
        """The ConfigMap for people."""
        return str(self.key)

    def holds(self, source: ConfigSource | None) -> bool:
        """Whether a configuration came from here."""
        return source is not None and (source.namespace, source.name) == (self.namespace, self.name)

    @property
    def default(self) -> str:
        """The key for nodes without a label; empty: they are not shared."""
        return self.policy.device_plugin.config.default if self.name else ""

    @property
    def unshared(self) -> Config:
        """What a node gets that no key is named for."""
        return Config(mig_strategy=self.policy.mig.strategy)

    @property
    def missing(self) -> Refusal | None:
        """Why there is nothing to choose from, where a ConfigMap is named and is not here."""
        if not self.name or self.config_map is not None:
            return None
        if self.elsewhere:
            places = wording.listed(self.elsewhere)
            text = (
                f"ConfigMap {self.name} is in namespace {places}, but must be in {self.namespace}: create it there, "
                f"with `kubectl create -n {self.namespace}`"
            )
        else:
            text = f"{self.title} does not exist: create it, or correct devicePlugin.config.name of the policy"
        return Refusal(reason=CONFIG_MAP_NOT_FOUND, text=text)

    def entry(self, key: str) -> Entry:
        """One key, whether it is there or not."""
        if key not in self._entries:
            self._entries[key] = self._read(key)
        return self._entries[key]

    def _read(self, key: str) -> Entry:
        data = self.config_map.data if self.config_map is not None else {}
        source = ConfigSource(namespace=self.namespace, name=self.name, key=key)
        text = data.get(key, "")
        config = Config(reason=ConfigReason.DEFAULT, source=source, content=text, mig_strategy=self.policy.mig.strategy)
        if refusal := self.missing or self._refuse_key(key):
            return Entry(config=config, refusal=refusal)
        if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
            return Entry(
                config=config, refusal=self._invalid(key, "it is empty; to share nothing, write `version: v1`")
            )
        parsed = _parse(text)
        if parsed.config is None:
            return Entry(config=config, refusal=self._invalid(key, wording.joined(map(str, parsed.problems), 600)))
        return Entry(
            config=config, warnings=tuple(f'"{key}" of {self.title}: {text}' for text in self._warnings(parsed))
        )

    def _refuse_key(self, key: str) -> Refusal | None:
        assert self.config_map is not None
        if key in self.config_map.data:
            return None
        if key in self.config_map.binary:
            return self._invalid(key, "it holds binary data; save the text as UTF-8 and create the ConfigMap again")
        keys = wording.listed(self.config_map.data.keys(), wording.KEYS) or "no keys"
        return Refusal(reason=KEY_NOT_FOUND, text=f'"{key}", which {self.title} does not have (it has {keys})')

    def _invalid(self, key: str, text: str) -> Refusal:
        return Refusal(reason=INVALID, text=f'"{key}" of {self.title}, which is not valid: {text}')

    def _warnings(self, parsed: ParsedSharing) -> list[str]:
        warnings = [str(warning) for warning in parsed.warnings]
        assert parsed.config is not None
        own, ruling = parsed.config.flags.mig_strategy, self.policy.mig.strategy
        if own is not None and ruling and own != ruling:
            warnings.append(
                f'flags.migStrategy: "{own}" has no effect, since the policy says mig.strategy "{ruling}"; '
                "remove one of them"
            )
        return warnings


def build_catalog(snapshot: Snapshot, policy: ClusterPolicy) -> Catalog:
    """The catalog of the policy that is acted upon."""
    name = policy.device_plugin.config.name
    return Catalog(
        settings=snapshot.settings,
        policy=policy,
        config_map=next((config_map for config_map in snapshot.config_maps if config_map.name == name), None),
        elsewhere=tuple(
            sorted(
                key.namespace
                for key in snapshot.config_maps_elsewhere
                if key.kind == manifests.CONFIG_MAP and key.name == name
            )
        ),
    )
