"""SearchIndex: documents by the words of a task: BM25 over weighted fields, forgiving of slips."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from ot.introspect.search_words import (
    VAGUE_WORDS,
    action_of,
    clauses,
    find_words,
    is_name,
    join_words,
    stem,
    synonyms,
    without_arguments,
    words_of,
)

Rule = tuple[float, int]
"""How much a word of a field counts, and how many words such a field usually has."""

K1 = 1.4
LENGTH = 0.6
"""How much a long field counts for less."""

SYNONYM, BEGINNING, SLIP = 0.75, 0.5, 0.8
"""What a word counts that is not the one sought but a synonym of it, begins with it, or is spelt much like it."""

COMMONER = 0.5
"""How much less a way to say a word counts that is commoner than the word: an exponent of their rarities' ratio."""

BESIDE = 0.45
"""What a word of a query counts for an intent that stands elsewhere in it."""

VAGUE, SUBJECT = 0.4, 0.6
"""What a word counts that may mean anything, and one that says what a search is about: that is an argument."""

OTHER_ACTION, DESTROYS = 0.8, 0.85
"""What a document counts that does something else than was asked, and one that deletes though nobody said so."""

COVERED = 0.2
"""How much less a document counts that says only some of the words: an exponent of their share."""

NAME_SAID = 0.75
"""How much more a document counts whose name the query says in full."""

PACK_SAID, OWN_WORD = 1.5, 0.8
"""What a document counts whose pack the query names, by a word that is so seldom used outside that pack."""

BEGINS = 4
MAX_BEGINNINGS = 20
LIKENESS = 75
MAX_WORDS = 32
RANKED = 120
"""So many of the documents with the best words are weighed by their names, too."""
CANDIDATES = 500
"""Once so many documents have the rarer words of a query, the others are looked for in the best of them alone."""


@dataclass(frozen=True, slots=True)
class Field:
    """Some text of a document, how much a word in it counts, and how many words such a text usually has."""

    text: str
    weight: float
    usual: int


@dataclass(frozen=True, slots=True)
class IndexHits:
    """The places of documents with their scores, best first, and the words of the query that nothing has."""

    hits: tuple[tuple[int, float], ...]
    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sought:
    """A word of a query: as it was written, the indexed words that it may mean, and how telling it is."""

    written: str
    meant: Mapping[str, float]
    rarity: float
    counts: float = 1.0

    def fainter(self, counts: float) -> Sought:
        """Return it as a word that counts for less."""
        return replace(self, rarity=self.rarity * counts, counts=self.counts * counts)


class SearchIndex:
    """An index of documents, each a name and some fields; built once, then only read."""

    def __init__(self, names: Sequence[str], fields: Iterable[Sequence[Field]]) -> None:
        """Index the documents with these *names*, the fields of each at the same place."""
        self._names = [frozenset(words_of(name)) for name in names]
        self._actions = [action_of(name.rpartition(".")[2]) for name in names]
        self._postings = _postings(fields)
        self._rarity = {term: _rarity(len(having), len(names)) for term, having in self._postings.items()}
        self._vocabulary = sorted(self._postings)
        self._packs = self._own_words([stem(name.partition(".")[0]) for name in names])
        self._synonyms = synonyms()

    def _own_words(self, packs: Sequence[str]) -> list[str]:
        """Return for each document the name of its pack, if hardly any other document has that word."""
        inside = Counter(packs)
        own = {pack for pack, tools in inside.items() if tools >= OWN_WORD * len(self._postings.get(pack, ()))}
        return [pack if pack in own else "" for pack in packs]

    def find(self, query: str) -> IndexHits:
        """Return the documents that fit *query*."""
        return self._find(list(self._words(query)), action_of(query))

    def find_each(self, query: str) -> list[IndexHits]:
        """Return the hits for *query* as a whole, then for each of its intents if it has several.

        What is said elsewhere in the query counts there too, for less: it may say whose page or ticket is meant.
        """
        parts = [(list(self._words(part)), action_of(part)) for part in clauses(query)]
        whole = list(self._words(query))
        found = [self._find(whole, action_of(query))]
        for part, action in parts if len(parts) > 1 else ():
            inside = {word.written for word in part}
            found.append(
                self._find([*part, *(word.fainter(BESIDE) for word in whole if word.written not in inside)], action)
            )
        return found

    def _find(self, sought: Sequence[Sought], action: str) -> IndexHits:
        words = sorted(sought, key=lambda word: -word.rarity)
        scores: dict[int, float] = {}
        said: dict[int, float] = defaultdict(float)
        for word in words:
            scores = _best_of(scores, CANDIDATES)
            full = len(scores) == CANDIDATES
            found = self._among(scores, word.meant) if full else self._everywhere(word.meant)
            for place, weight in found.items():
                scores[place] = scores.get(place, 0.0) + word.rarity * weight
                said[place] += word.rarity * (weight if weight < 1.0 else 1.0)
        every = sum(word.rarity for word in words) or 1.0
        best = {place: score * (said[place] / every) ** COVERED for place, score in _best_of(scores, RANKED).items()}
        hits = self._by_name(best, words, action)
        return IndexHits(tuple(hits), tuple(word.written for word in words if not word.meant))

    # ---------------------------------------------------------------- what a query means

    def _words(self, query: str) -> Iterator[Sought]:
        bare = without_arguments(query)
        telling = {word for _, word in find_words(bare)}
        for written, word in find_words(f"{bare} {query}")[:MAX_WORDS]:
            counts = (VAGUE if written.lower() in VAGUE_WORDS else 1.0) * (1.0 if word in telling else SUBJECT)
            for part in self._parts(word) or (word,):
                yield self._seek(written, part).fainter(counts)
        for written, word in join_words(query)[:MAX_WORDS]:
            if word in self._postings or word in self._synonyms:
                yield self._seek(written, word)

    def _seek(self, written: str, word: str) -> Sought:
        meant = self._find_meanings(
            word, guess=len(written) > 3 and not is_name(written) and written.lower() not in VAGUE_WORDS
        )
        known = [word] if word in self._postings else meant
        rarity = max((self._rarity[term] for term in known), default=0.0)
        # Said in a commoner word, the same is less telling.
        told = {term: factor * min(1.0, self._rarity[term] / rarity) ** COMMONER for term, factor in meant.items()}
        return Sought(written, told, rarity)

    def _find_meanings(self, word: str, guess: bool) -> dict[str, float]:
        """Return the meanings of *word*; a *guess* also takes words that begin with it or are spelt much like it."""
        near = self._synonyms.get(word, {})
        meant = {term: SYNONYM * likely for term, likely in near.items() if term in self._postings}
        meant |= dict.fromkeys(self._beginning_with(word), BEGINNING) if guess else {}
        if word in self._postings:
            return meant | {word: 1.0}
        return meant | (dict(self._like(word)) if guess and (not meant or word not in self._synonyms) else {})

    def _parts(self, word: str) -> tuple[str, str] | None:
        """Return the two indexed words that *word* is made of: ``mergecells`` is ``merge`` and ``cells``."""
        if word in self._postings or word in self._synonyms:
            return None
        cuts = ((stem(word[:cut]), stem(word[cut:])) for cut in range(3, len(word) - 2))
        return next((cut for cut in cuts if cut[0] in self._postings and cut[1] in self._postings), None)

    def _beginning_with(self, word: str) -> list[str]:
        if len(word) < BEGINS:
            return []
        start = bisect_left(self._vocabulary, word)
        stop = bisect_left(self._vocabulary, f"{word}\U0010ffff")
        return self._vocabulary[start : min(stop, start + MAX_BEGINNINGS)]

    def _like(self, word: str) -> Iterator[tuple[str, float]]:
        from rapidfuzz import fuzz, process  # noqa: PLC0415 - only a search needs it

        if len(word) >= 3:
            near = process.extract(word, self._vocabulary, scorer=fuzz.ratio, score_cutoff=LIKENESS, limit=5)
            yield from ((term, SLIP * likeness / 100) for term, likeness, _ in near)

    # ---------------------------------------------------------------- which documents say it

    def _everywhere(self, meant: Mapping[str, float]) -> dict[int, float]:
        """Return the word's weight in each document: that of the variant that counts most, not a sum."""
        found: dict[int, float] = {}
        for term, factor in meant.items():
            for place, weight in self._postings[term].items():
                if found.get(place, 0.0) < weight * factor:
                    found[place] = weight * factor
        return found

    def _among(self, places: Iterable[int], meant: Mapping[str, float]) -> dict[int, float]:
        ways = [(self._postings[term], factor) for term, factor in meant.items()]
        return {place: max((of.get(place, 0.0) * factor for of, factor in ways), default=0.0) for place in places}

    def _by_name(self, scores: dict[int, float], words: Sequence[Sought], action: str) -> list[tuple[int, float]]:
        said: dict[str, float] = {}
        for word in words:
            said |= {term: max(factor * word.counts, said.get(term, 0.0)) for term, factor in word.meant.items()}

        def fit(place: int) -> float:
            name = self._names[place]
            said_of_it = sum(said.get(word, 0.0) for word in name) / max(1, len(name))
            of_pack = PACK_SAID if said.get(self._packs[place], 0.0) > SUBJECT else 1.0
            return (1 + NAME_SAID * said_of_it) * _weigh_action(action, self._actions[place]) * of_pack

        ranked = ((place, score * fit(place)) for place, score in scores.items())
        return sorted(ranked, key=lambda hit: (-hit[1], hit[0]))


def _weigh_action(asked: str, does: str) -> float:
    """Return the weight of a document whose action is not the one asked for."""
    if asked == does or not does:
        return 1.0
    if does == "delete":
        return DESTROYS
    return OTHER_ACTION if asked else 1.0


def _best_of(scores: dict[int, float], most: int) -> dict[int, float]:
    if len(scores) <= most:
        return scores
    return {place: scores[place] for place in nlargest(most, scores, key=scores.__getitem__)}


# ---------------------------------------------------------------- building


def _rarity(having: int, of: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


def _postings(documents: Iterable[Sequence[Field]]) -> dict[str, dict[int, float]]:
    """Return for each word the documents that have it, and how much it counts in each."""
    postings: dict[str, dict[int, float]] = defaultdict(dict)
    for place, fields in enumerate(documents):
        frequencies: dict[str, float] = {}
        for field in fields:
            words = words_of(field.text)
            share = field.weight / (1 - LENGTH + LENGTH * len(words) / field.usual)
            for word in words:
                frequencies[word] = frequencies.get(word, 0.0) + share
        for word, frequency in frequencies.items():
            postings[word][place] = frequency * (K1 + 1) / (K1 + frequency)
    return dict(postings)
