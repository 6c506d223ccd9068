// The page around the light: words to point at, choices, and the same in numbers. Texts enter as text only.
const at = id => document.getElementById(id);
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const sides = {from: at('from'), to: at('to')};
const buttons = {from: [], to: []};
let stays = words.map(() => true);

const rowHeight = count => count <= 14 ? 34 : count <= 24 ? 28 : count <= 48 ? 23 : count <= 140 ? 18 : 15;

// Colours of a word's heads, as long as their parts of its new representation.
const partsBar = parts => {
  const sum = parts.reduce((a, b) => a + b, 0);
  let begin = 0;
  const stops = parts.map((part, head) => {
    const end = begin + 100 * part / Math.max(sum, 1e-30);
    const stop = `${colourOf(head)} ${begin.toFixed(2)}% ${end.toFixed(2)}%`;
    begin = end;
    return stop;
  });
  return `linear-gradient(to right, ${stops.join(', ')})`;
};

const paintBars = () => {
  const {parts} = layerOf(shown.layer);
  document.body.classList.toggle('has-parts', parts !== null);
  if (parts === null) return;
  const sums = parts.map(row => row.reduce((a, b) => a + b, 0));
  const most = Math.max(...sums, 1e-30);
  words.forEach((_, word) => {
    const bar = buttons.from[word].querySelector('.bar');
    bar.style.background = partsBar(parts[word]);
    bar.style.width = `${(100 * sums[word] / most).toFixed(1)}%`;
  });
};

const layOut = () => {
  stays = wordsThatStay();
  let row = 0;
  geometry.rows = words.map((_, word) => stays[word] ? row++ : -1);
  geometry.row = rowHeight(row);
  document.documentElement.style.setProperty('--row', `${geometry.row}px`);
  for (const side of ['from', 'to']) {
    buttons[side].forEach((button, word) => { button.parentElement.hidden = !stays[word]; });
  }
  const controls = document.querySelector('form').offsetHeight;
  document.documentElement.style.setProperty('--controls', `${controls}px`);
  const width = at('beams').clientWidth;
  geometry.width = Math.max(160, width);
  geometry.height = row * geometry.row + 2 * margin;
  const all = wordsToShow().filter(shows => shows).length;
  at('folded').hidden = row === all;
  at('folded').textContent = row === all ? '' : `${all - row} of ${all} words are folded away.`;
};

// The head's line, on the ground of an element.
const pictureOfLine = head => {
  let end = 0;
  const stops = dashes[head].map((length, n) => {
    const begin = end;
    end += length;
    return `${n % 2 === 0 ? colourOf(head) : 'transparent'} ${begin}px ${end}px`;
  });
  return `repeating-linear-gradient(to right, ${stops.length > 0 ? stops.join(', ') : `${colourOf(head)} 0 1px`})`;
};

const chip = head => {
  const mark = make('span', 'chip', String(head));
  mark.style.setProperty('--line', pictureOfLine(head));
  return mark;
};

const places = new Map();  // of each text
words.forEach(({text}, word) => places.has(text) ? places.get(text).push(word) : places.set(text, [word]));

// As --from names it: #2 is the second of several.
const labelled = word => {
  const element = make('bdi', words[word].special ? 'special' : '', words[word].text);
  if (words[word].lang) element.lang = words[word].lang;
  const alike = places.get(words[word].text);
  if (alike.length > 1) element.append(make('small', '', `#${alike.indexOf(word) + 1}`));
  return element;
};

// One beam in words; a click goes to what it reaches.
const beamItem = (beam, ends) => {
  const item = make('li');
  const button = make('button', 'beam');
  button.type = 'button';
  button.append(chip(beam.head));
  const text = make('span', 'ends');
  ends.forEach((end, n) => { if (n > 0) text.append(' → '); text.append(labelled(beam[end])); });
  button.append(text, make('span', 'share', percent(beam.weight)));
  button.addEventListener('click', () => { pin({from: beam.from, to: beam.to, either: false}, beam.from); });
  item.append(button);
  return item;
};

const section = (title, items, note) => {
  const part = make('section');
  part.append(make('h3', '', title));
  if (note) part.append(make('p', 'note', note));
  const list = make('ol');
  list.append(...items);
  part.append(items.length > 0 ? list : make('p', 'note', 'Nothing above the faintest beam shown.'));
  return part;
};

const partItems = word => {
  const {parts} = layerOf(shown.layer);
  if (parts === null) return [];
  const sum = parts[word].reduce((a, b) => a + b, 0);
  const most = Math.max(...parts[word], 1e-30);
  const order = [...parts[word].keys()].sort((a, b) => parts[word][b] - parts[word][a]);
  return order.slice(0, 12).map(head => {
    const item = make('li', 'part');
    const bar = make('span', 'level');
    bar.style.setProperty('--colour', colourOf(head));
    bar.style.setProperty('--length', `${(100 * parts[word][head] / most).toFixed(1)}%`);
    item.append(chip(head), bar, make('span', 'share', percent(parts[word][head] / Math.max(sum, 1e-30))));
    return item;
  });
};

const strongest = (beams, count) => beams.slice(-count).reverse();

const brightestOfHeads = beams => {
  const best = new Map();
  for (const beam of beams) {
    if (beam.from !== beam.to && !words[beam.from].special && !words[beam.to].special) best.set(beam.head, beam);
  }
  return [...best.values()].sort((a, b) => a.head - b.head);
};

const describe = () => {
  const focus = focusOf();
  const word = wordInFocus();
  const beams = visibleBeams();
  const details = at('details');
  const parts = [];
  if (word === null) {
    parts.push(make('h2', '', `Layer ${shown.layer}`));
    parts.push(section('The brightest beam of each head', brightestOfHeads(beams).map(beam => beamItem(beam, ['from', 'to'])),
                       'Between two different words. Point at a word to see its own.'));
  } else {
    const heading = make('h2');
    heading.append(labelled(word));
    parts.push(heading);
    if (!focus.either && focus.from !== null && focus.to !== null) {
      const between = beams.filter(beam => isLit(beam, focus));
      parts.push(section('These two', strongest(between, 12).map(beam => beamItem(beam, ['from', 'to']))));
    }
    const leaves = beams.filter(beam => beam.from === word);
    const arrives = beams.filter(beam => beam.to === word);
    parts.push(section('looks at', strongest(leaves, 6).map(beam => beamItem(beam, ['to']))));
    parts.push(section('is looked at by', strongest(arrives, 6).map(beam => beamItem(beam, ['from']))));
    const items = partItems(word);
    if (items.length > 0) {
      parts.push(section('put together again', items, 'What each head brings into the word’s new representation.'));
    }
  }
  details.replaceChildren(...parts);
};

const mark = () => {
  const focus = focusOf();
  const touched = new Set();
  if (focus !== null) {
    for (const beam of visibleBeams()) if (isLit(beam, focus)) touched.add(beam.from).add(beam.to);
    [focus.from, focus.to].forEach(word => touched.add(word));
  }
  document.body.classList.toggle('in-focus', focus !== null);
  for (const side of ['from', 'to']) {
    buttons[side].forEach((button, word) => {
      const chosen = focus !== null && (focus[side] === word || (focus.either && focus.from === word));
      button.classList.toggle('chosen', chosen);
      button.classList.toggle('touched', touched.has(word));
      button.setAttribute('aria-pressed', String(shown.pinned !== null && chosen));
    });
  }
};

const drawFocus = () => {
  const focus = focusOf();
  at('lit').hidden = focus === null;
  if (focus !== null) drawLight(at('lit'), focus, stays);
  mark();
  describe();
};

const drawEverything = () => {
  const count = drawLight(at('all'), null, stays);
  at('dimmest').textContent = count <= mostBeams ? '' : `the ${mostBeams.toLocaleString('en')} brightest of ${
      count.toLocaleString('en')} beams; with fewer heads all are drawn`;
};

const drawAll = () => {
  layOut();
  drawEverything();
  paintBars();
  drawFocus();
  document.querySelectorAll('#heads button[data-head]').forEach(button => {
    const head = Number(button.dataset.head);
    button.setAttribute('aria-pressed', String(shown.heads.has(head)));
    button.style.setProperty('--line', pictureOfLine(head));
  });
  at('every-head').setAttribute('aria-pressed', String(shown.heads.size === heads));
  at('faintest-value').textContent = percent(shown.faintest);
};

// A pinned word stays lit until another one is, Escape is pressed, or it is chosen once more.
const pin = (focus, word) => {
  shown.pinned = focus;
  shown.hovered = null;
  if (shown.folded) drawAll(); else drawFocus();
  if (focus !== null && word !== undefined) buttons.from[word].scrollIntoView({block: 'nearest'});
};

const hover = focus => {
  shown.hovered = focus;
  drawFocus();
};

const samePlace = (a, b) => a !== null && b !== null && a.from === b.from && a.to === b.to && a.either === b.either;

const wordButton = (side, word) => {
  const item = make('li');
  const button = make('button', words[word].special ? 'word special' : 'word');
  button.type = 'button';
  button.tabIndex = -1;
  const label = make('bdi', 'label', words[word].text);
  if (words[word].lang) label.lang = words[word].lang;
  if (side === 'from') {
    const holder = make('span', 'holder');
    holder.append(make('span', 'bar'));
    button.append(holder);
  }
  button.append(label);
  const focus = {from: word, to: word, either: true};
  button.addEventListener('pointerenter', event => event.pointerType === 'mouse' && hover(focus));
  button.addEventListener('pointerleave', event => event.pointerType === 'mouse' && hover(null));
  button.addEventListener('focus', () => {
    setEntry(button);
    if (button.matches(':focus-visible')) hover(focus);
  });
  button.addEventListener('blur', () => shown.hovered !== null && hover(null));
  button.addEventListener('click', () => pin(samePlace(shown.pinned, focus) ? null : focus));
  button.addEventListener('keydown', event => step(event, side, word));
  item.append(button);
  sides[side].append(item);
  buttons[side].push(button);
};

// Of all words one is reached by Tab; arrow keys lead to the others.
const setEntry = entry => {
  for (const side of ['from', 'to']) for (const button of buttons[side]) button.tabIndex = button === entry ? 0 : -1;
};

const step = (event, side, word) => {
  const visible = [...words.keys()].filter(one => stays[one]);
  const place = visible.indexOf(word);
  const other = side === 'from' ? 'to' : 'from';
  const target = {
    ArrowUp: () => buttons[side][visible[Math.max(0, place - 1)]],
    ArrowDown: () => buttons[side][visible[Math.min(visible.length - 1, place + 1)]],
    ArrowLeft: () => buttons.from[word],
    ArrowRight: () => buttons.to[word],
    Home: () => buttons[side][visible[0]],
    End: () => buttons[side][visible[visible.length - 1]],
  }[event.key];
  if (!target || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  target().focus();
};

const chooseHead = (head, many) => {
  if (many) {
    if (!shown.heads.delete(head)) shown.heads.add(head);
    if (shown.heads.size === 0) shown.heads.add(head);
  } else {
    const alone = shown.heads.size === 1 && shown.heads.has(head);
    shown.heads = new Set(alone ? Array(heads).keys() : [head]);
  }
  drawAll();
};

// The slider's places are powers of ten: 1 is half a percent, 100 half of the light.
const faintestAt = place => place === 0 ? 0 : 0.005 * 100 ** ((place - 1) / 99);

const makeChoices = () => {
  data.layers.forEach((_, layer) => {
    const label = make('label', 'layer');
    const radio = make('input');
    Object.assign(radio, {type: 'radio', name: 'layer', value: layer, checked: layer === shown.layer});
    radio.addEventListener('change', () => { shown.layer = layer; drawAll(); });
    label.append(radio, make('span', '', String(layer)));
    at('layers').append(label);
  });
  for (let head = 0; head < heads; ++head) {
    const button = chip(head);
    const pressed = make('button', button.className, String(head));
    pressed.type = 'button';
    pressed.dataset.head = head;
    pressed.setAttribute('aria-label', `Head ${head}`);
    pressed.addEventListener('click', event => chooseHead(head, event.ctrlKey || event.metaKey || event.shiftKey));
    pressed.addEventListener('pointerenter', event => preview(event, head));
    pressed.addEventListener('pointerleave', event => preview(event, null));
    at('heads').append(pressed);
  }
  at('every-head').addEventListener('click', () => { shown.heads = new Set(Array(heads).keys()); drawAll(); });
  at('faintest').addEventListener('input', event => {
    shown.faintest = faintestAt(Number(event.target.value));
    drawAll();
  });
  at('specials').addEventListener('change', event => { shown.specials = event.target.checked; drawAll(); });
  at('fold').addEventListener('change', event => { shown.folded = event.target.checked; drawAll(); });
};

const preview = (event, head) => {
  if (event.pointerType !== 'mouse') return;
  shown.preview = head;
  drawEverything();
  drawFocus();
};

const start = () => {
  for (const side of ['from', 'to']) words.forEach((_, word) => wordButton(side, word));
  setEntry(buttons.from[0]);
  at('specials-choice').hidden = !words.some(word => word.special);
  at('faintest').value = words.length > 16 ? 45 : 31;
  shown.faintest = faintestAt(Number(at('faintest').value));
  shown.folded = words.length > 64;
  at('fold').checked = shown.folded;
  at('fold-choice').hidden = words.length < 12;
  makeChoices();
  drawAll();
  document.addEventListener('keydown', event => event.key === 'Escape' && pin(null));
  document.addEventListener('click', event => {
    if (shown.pinned !== null && !event.target.closest('button, label, input, #details')) pin(null);
  });
  new ResizeObserver(() => at('beams').clientWidth !== geometry.width && drawAll()).observe(at('beams'));
  night.addEventListener('change', drawAll);
  paper.addEventListener('change', drawAll);
  addEventListener('beforeprint', () => { printing = true; drawAll(); });
  addEventListener('afterprint', () => { printing = false; drawAll(); });
};

start();
