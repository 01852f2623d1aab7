// Words of a text in the colours of the topics that they belong to in that document.

const placeOfWord = new Map(words.text.map((text, word) => [text.toLowerCase(), word]));
const longestPhrase = Math.min(4, words.text.reduce((most, text) => Math.max(most, text.split(' ').length), 1));

// A word belongs to a topic if it is this much more common there than in the corpus,
// and if most of the document's uses of it are due to that topic.
const leastLift = 1.5;

// The place among `topics` (pairs of topic and part) that a word belongs to; −1 for none.
function topicInDocument(word, topics) {
  const lifts = new Map(topicsOfWord(word).map(([id, part]) => [id, part / topicById.get(id).prevalence]));
  const weights = topics.map(([id, part]) => part * (lifts.get(id) || 0));
  const best = weights.indexOf(Math.max(...weights));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  return whole > 0 && weights[best] > 0.5 * whole && lifts.get(topics[best][0]) >= leastLift ? best : -1;
}

// The text as nodes; `typed` are words, in small letters, that were searched for.
function highlighted(text, topics, typed = []) {
  const tokens = [...text.matchAll(/[\p{L}\p{N}_]+/gu)];
  const nodes = [];
  let written = 0;
  for (let i = 0; i < tokens.length; i += 1) {
    let [length, word] = [1, undefined];
    for (let n = Math.min(longestPhrase, tokens.length - i); n > 0 && word === undefined; n -= 1) {
      word = placeOfWord.get(tokens.slice(i, i + n).map((token) => token[0].toLowerCase()).join(' '));
      length = n;
    }
    const last = tokens[i + length - 1];
    const shown = text.slice(tokens[i].index, last.index + last[0].length);
    const place = word === undefined ? -1 : topicInDocument(word, topics);
    const wanted = typed.some((each) => shown.toLowerCase().includes(each));
    if (place < 0 && !wanted) continue;
    nodes.push(text.slice(written, tokens[i].index));
    const classes = [place < 0 ? '' : `topic-${place}`, wanted ? 'wanted' : ''].join(' ').trim();
    nodes.push(html('mark', { class: classes, title: place < 0 ? null : `topic ${topics[place][0]}` }, shown));
    written = last.index + last[0].length;
    i += length - 1;
  }
  nodes.push(text.slice(written));
  return nodes;
}
