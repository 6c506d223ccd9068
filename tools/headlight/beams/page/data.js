// What the file holds, and which of it is shown. Everything here is plain arithmetic.
const data = JSON.parse(document.getElementById('data').textContent);
const words = data.words;
const heads = data.heads;

const bytesOf = text => {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; ++at) bytes[at] = letters.charCodeAt(at);
  return new DataView(bytes.buffer);
};

// Each head and word: a count, then so many pairs of a word and a weight in 65535ths, 16 bits little-endian each.
const decodeBeams = text => {
  const bytes = bytesOf(text);
  const beams = [];
  let at = 0;
  const next = () => bytes.getUint16((at += 2) - 2, true);
  for (let head = 0; head < heads; ++head) {
    for (let from = 0; from < words.length; ++from) {
      for (let left = next(); left > 0; --left) beams.push({head, from, to: next(), weight: next() / 65535});
    }
  }
  // The bright ones are drawn last, over the others.
  return beams.sort((a, b) => a.weight - b.weight);
};

// [word][head]: how long the head's part of the word's new representation is.
const decodeParts = text => {
  if (!text) return null;
  const bytes = bytesOf(text);
  return words.map((_, word) =>
      Array.from({length: heads}, (_, head) => bytes.getFloat32(4 * (word * heads + head), true)));
};

const decoded = new Map();
const layerOf = number => {
  if (!decoded.has(number)) {
    const layer = data.layers[number];
    decoded.set(number, {beams: decodeBeams(layer.beams), parts: decodeParts(layer.parts)});
  }
  return decoded.get(number);
};

// What is shown. `pinned` and `hovered` are {from, to, either}: beams that leave `from` and arrive at `to` (null: any), or
// with `either` those that do one or the other.
const shown = {
  layer: data.view.layer,
  heads: new Set(data.view.heads),
  preview: null,
  pinned: data.view.from === null && data.view.to === null ? null : {from: data.view.from, to: data.view.to, either: false},
  hovered: null,
  faintest: 0,
  specials: true,
  folded: false,
};

const focusOf = () => shown.hovered ?? shown.pinned;
const wordInFocus = () => {
  const focus = focusOf();
  return focus === null ? null : focus.from ?? focus.to;
};

const isLit = (beam, focus) => {
  if (focus === null) return true;
  if (focus.either) return beam.from === focus.from || beam.to === focus.to;
  return (focus.from === null || beam.from === focus.from) && (focus.to === null || beam.to === focus.to);
};

const showsHead = head => shown.preview === null ? shown.heads.has(head) : shown.preview === head;

const visibleBeams = () => layerOf(shown.layer).beams.filter(
    beam => showsHead(beam.head) && beam.weight >= shown.faintest &&
        (shown.specials || !(words[beam.from].special || words[beam.to].special)));

// The words that may be shown, and of them those that stay when others are folded away: [CLS] and [SEP], and the words
// between which the brightest beams run, as many as are seen at once. With a pinned word, its beams.
const atOnce = 40;
const wordsToShow = () => words.map(word => shown.specials || !word.special);
const wordsThatStay = () => {
  const stays = wordsToShow();
  if (!shown.folded) return stays;
  const touched = new Set();
  const focus = shown.pinned;
  if (focus !== null) [focus.from, focus.to].forEach(word => word !== null && touched.add(word));
  const beams = visibleBeams();
  for (let at = beams.length - 1; at >= 0 && touched.size < atOnce; --at) {
    const {from, to} = beams[at];
    // Unless a word is chosen, beams to itself and to its neighbours say little about it.
    const tells = focus === null ? Math.abs(from - to) > 1 : from !== to;
    if (tells && !words[from].special && !words[to].special && isLit(beams[at], focus)) touched.add(from).add(to);
  }
  return stays.map((stay, word) => stay && (words[word].special || touched.has(word)));
};

const percent = share => share >= 0.0995 ? `${Math.round(100 * share)} %` : `${(100 * share).toFixed(1)} %`;
