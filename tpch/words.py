"""The words that TPC-H's data is made of, as far as parameters of queries are drawn from them (specification, clause 4.2.2.13
and 4.2.3)."""

from __future__ import annotations

from itertools import product

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
# each nation and the place of its region in REGIONS
NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3, "GERMANY": 3,
    "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4, "KENYA": 0, "MOROCCO": 0,
    "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3,
    "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPE_SYLLABLES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
TYPES = tuple(" ".join(t) for t in product(*TYPE_SYLLABLES))
CONTAINERS = tuple(
    " ".join(c)
    for c in product(("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"))
)
BRANDS = tuple(f"Brand#{m}{n}" for m, n in product(range(1, 6), range(1, 6)))
_COLORS = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse
    chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted
    gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen
    magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach
    peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow
    spring steel tan thistle tomato turquoise violet wheat white yellow
"""
COLORS = tuple(_COLORS.split())
COMMENT_WORDS = (
    ("special", "pending", "unusual", "express"),
    ("packages", "requests", "accounts", "deposits"),
)
COUNTRY_CODES = tuple(range(10, 35))
