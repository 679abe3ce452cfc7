"""The words of the network: names, places, interests, and what posts are made of."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES: Final = _words(
    "Ada Alan Alma Amir Anja Anouk Arlo Astrid Aysel Bart Bea Bengt Bruno Carla Cem Chiara Clara "
    "Cormac Dana Dario Deniz Dirk Edda Eleni Elias Emre Enzo Esther Eva Fatma Femke Finn Fleur "
    "Gaia Goran Greta Hana Hanno Ida Ilse Imre Ines Ingrid Ivo Jana Jasper Joana Jonas Josip Julia "
    "Kaito Karin Kenji Kira Lars Layla Lena Levi Lidia Linus Lotte Luca Magda Maike Marek Mateo "
    "Maud Mei Mila Milan Mina Nadia Nils Nina Noor Nuno Olga Omar Orla Otto Paula Pavel Petra Pim "
    "Quinn Rafa Rania Remi Rosa Ruben Runa Sami Sara Selma Silvia Sven Tamar Tess Tilda Timo Tomas "
    "Uma Uwe Vera Viktor Wim Yara Yusuf Zora"
)
LAST_NAMES: Final = _words(
    "Aalto Abe Adler Almeida Andersen Baker Barros Beck Berg Bianchi Boer Borg Brandt Byrne Carver "
    "Castro Chen Cohen Costa Dahl Demir Dijk Dubois Duval Egger Ekman Farkas Fischer Flynn Fontana "
    "Garcia Greco Haas Hansen Hoekstra Holm Horvat Hughes Ito Janssen Jensen Kaya Keller Kim "
    "Kovacs Kruger Lang Larsen Leclerc Lind Lopez Maes Marin Meyer Moreau Mori Mulder Murphy Nagy "
    "Neri Novak Nyman Okafor Olsen Ortega Papas Peeters Pereira Petrov Quist Ramos Ricci Rojas "
    "Rossi Sato Schmid Silva Smit Soler Stein Suzuki Tanaka Torres Turner Vega Visser Vogel Walsh "
    "Weber Wolf Yilmaz Young Zeman"
)

# Name, country, latitude, longitude. The most drawn first.
PLACES: Final[tuple[tuple[str, str, float, float], ...]] = (
    ("Amsterdam", "Netherlands", 52.373, 4.893),
    ("Berlin", "Germany", 52.520, 13.405),
    ("London", "England", 51.507, -0.128),
    ("Madrid", "Spain", 40.417, -3.704),
    ("Paris", "France", 48.857, 2.352),
    ("Rome", "Italy", 41.903, 12.496),
    ("Vienna", "Austria", 48.208, 16.373),
    ("Istanbul", "Turkey", 41.009, 28.978),
    ("Tokyo", "Japan", 35.690, 139.692),
    ("Galway", "Ireland", 53.271, -9.057),
    ("Lisbon", "Portugal", 38.722, -9.139),
    ("Warsaw", "Poland", 52.230, 21.012),
    ("Budapest", "Hungary", 47.498, 19.040),
    ("Rotterdam", "Netherlands", 51.925, 4.478),
    ("Hamburg", "Germany", 53.551, 9.994),
    ("Manchester", "England", 53.481, -2.242),
    ("Barcelona", "Spain", 41.385, 2.173),
    ("Lyon", "France", 45.764, 4.836),
    ("Milan", "Italy", 45.464, 9.190),
    ("Graz", "Austria", 47.071, 15.439),
    ("Ankara", "Turkey", 39.934, 32.860),
    ("Osaka", "Japan", 34.694, 135.502),
    ("Dublin", "Ireland", 53.350, -6.260),
    ("Porto", "Portugal", 41.158, -8.629),
    ("Krakow", "Poland", 50.065, 19.945),
    ("Utrecht", "Netherlands", 52.091, 5.122),
    ("Munich", "Germany", 48.135, 11.582),
    ("Leeds", "England", 53.801, -1.549),
    ("Seville", "Spain", 37.389, -5.984),
    ("Nantes", "France", 47.218, -1.554),
    ("Turin", "Italy", 45.070, 7.687),
    ("Linz", "Austria", 48.306, 14.286),
    ("Oslo", "Norway", 59.914, 10.752),
    ("Stockholm", "Sweden", 59.329, 18.069),
    ("Helsinki", "Finland", 60.170, 24.938),
    ("Athens", "Greece", 37.984, 23.728),
    ("Zagreb", "Croatia", 45.815, 15.982),
    ("Prague", "Czechia", 50.075, 14.438),
    ("Sydney", "Australia", -33.869, 151.209),
    ("Santiago", "Chile", -33.449, -70.669),
)
COUNTRIES: Final = tuple(dict.fromkeys(country for _, country, _, _ in PLACES))

INTERESTS: Final = _words(
    "football cycling jazz cinema cooking hiking chess photography gardening sailing opera poetry "
    "running history astronomy baking theatre skating painting birds trains tennis coffee travel "
    "surfing yoga guitar museums knitting climbing ceramics swimming robots maps cheese tea dance "
    "comics rowing volleyball archery judo piano languages fishing camping puzzles science markets "
    "architecture weather politics economics fashion design radio podcasts cats dogs horses rain"
)
BROWSERS: Final = ("Firefox", "Chromium", "Safari", "Opera", "Lynx")
EMPLOYERS: Final = ("Works", "Bank", "Hospital", "Theatre", "Railways", "Press", "School", "Bakery")
STATUSES: Final = ("single", "married", "in a relationship", "engaged", "it is complicated")

OPENINGS: Final = (
    "today", "finally", "once more", "who would have thought", "a short note", "good news",
    "this morning", "last night", "on the way home", "a question", "just now", "for the record",
    "as promised", "another try", "slowly", "against all odds",
)  # fmt: skip
DOINGS: Final = (
    "we talked about", "I read about", "nobody asked about", "they built something for",
    "my neighbour is mad about", "I am learning about", "there was a talk on",
    "we won a prize for", "I gave up on", "I cannot stop thinking about", "we met because of",
    "the whole town is here for", "I wrote a page about", "my sister began with",
    "it rained during", "we ran out of time for",
)  # fmt: skip
CLOSINGS: Final = (
    "and it was worth it", "and nobody noticed", "so come along next week", "with old friends",
    "and I would do it again", "until late at night", "in spite of the rain", "for the first time",
    "and that is all", "more about it tomorrow", "with too much coffee", "as every year",
    "and I have pictures", "but do not tell anyone", "at the station", "in the old harbour",
)  # fmt: skip
REPLIES: Final = (
    "well said", "I was there too", "when is the next one", "not so sure about that",
    "send me the pictures", "this made my day", "see you there", "I told you so",
    "what a coincidence", "count me in", "tell me more", "same here",
)  # fmt: skip
