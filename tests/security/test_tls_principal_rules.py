"""Rules for the principals of certificates, as Kafka's SslPrincipalMapper has them."""

from __future__ import annotations

import pytest

from ottla.security.tls_principal_rules import NoMatchingRuleError, PrincipalRules

RULES = ", ".join(
    [
        r"RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        r"RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        r"RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        r"RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        (RULES, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (RULES, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (RULES, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (RULES, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz", r"Tkac\, Adam"),
        ("RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/", "CN=me,O=x", "me"),
        (r"RULE:^CN=(.*?)\/(.*?)$/$2\/$1/", "CN=a/b", "b/a"),
        ("RULE:^CN=(?<who>[^,]+).*$/${who}/", "CN=me,O=x", "me"),
        ("RULE:^(CN)=(..)$/$0 $12 $3 $2/", "CN=me", "CN=me CN2 $3 me"),
        ("RULE:^CN=(me)?.*$/<$1>/", "CN=you", "<>"),
        ("RULE:^CN=(.*)$/\\$1/", "CN=me", "$1"),
        (",, DEFAULT ,", "CN=me", "CN=me"),
        ("RULE:CN=.*/x/,DEFAULT", "O=x,CN=me", "O=x,CN=me"),  # the whole name has to match
        ("RULE:.*/x/", "CN=me", "xx"),  # as in Java, once for the text and once for its end
    ],
)
def test_the_first_rule_that_matches_gives_the_name(rules: str, name: str, principal: str) -> None:
    assert PrincipalRules(rules).name(name) == principal


@pytest.mark.parametrize("rules", ["", " , ,", "RULE:^O=.*$/x/"])
def test_where_no_rule_matches_there_is_no_name(rules: str) -> None:
    with pytest.raises(NoMatchingRuleError, match="CN=me"):
        PrincipalRules(rules).name("CN=me")


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/U",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/L",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:(/x/",
        r"RULE:\p{Alpha}/x/",
        "RULE:[a-z&&[aeiou]]/x/",
        "RULE:CN=(.*)/$/",
        "RULE:CN=(.*)/${who}/",
    ],
)
def test_malformed_rules_are_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        PrincipalRules(rules)


def test_commas_and_rules_may_stand_in_a_rule() -> None:
    rules = r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, /DEFAULT/,DEFAULT"
    assert PrincipalRules(rules).name(",RULE:,") == ",RULE:,/"
    assert PrincipalRules(rules).name(",") == "RULE:,"
    assert PrincipalRules(rules).name(", DEFAULT, ") == "DEFAULT"
    assert PrincipalRules(rules).name("CN=me") == "CN=me"
