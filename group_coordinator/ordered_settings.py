"""Settings of which some have to be in an order; a broker whose settings are not does not start."""

from __future__ import annotations

from ..base.settings import SettingError, Settings


class OrderedSettings(Settings):
    """Attributes are named as in the class; errors name the properties."""

    def check_order(self, lower: str, higher: str) -> None:
        """Raises SettingError where ``higher`` is the lower one."""
        if getattr(self, higher) < getattr(self, lower):
            if lower.startswith("min_"):
                raise self.misfit(higher, "greater than or equal to", lower)
            raise self.misfit(lower, "less than or equal to", higher)

    def misfit(self, attribute: str, relation: str, other: str) -> SettingError:
        """That an attribute is not in a relation to another one."""
        name, other_name = str(self.declared[attribute].name), str(self.declared[other].name)
        return SettingError(
            name, str(getattr(self, attribute)), f"must be {relation} {other_name}, which is {getattr(self, other)}"
        )
