// Whoever searches for a word of the field wants a page that explains it. Names of the
// reference come first only where the whole name was typed.
const asked = () => (new URLSearchParams(location.search).get("q") || "").trim();

var Scorer = {
  score: ([page, title, , , score]) => {
    if (!page.startsWith("api/")) return score + 100;
    return title.split(".").pop() === asked() ? score + 200 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
