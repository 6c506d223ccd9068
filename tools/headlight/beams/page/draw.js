// Light on canvas: white rays reach a prism, colours leave it, each for one head.
const night = matchMedia('(prefers-color-scheme: dark)');
const paper = matchMedia('print');
let printing = false;
const isDark = () => night.matches && !printing && !paper.matches;
const colourOf = head => (isDark() ? data.colours.dark : data.colours.light)[head];
// Lengths of dashes and gaps; none where the line is drawn through.
const dashes = data.lines.map(line => line.split(' ').filter(length => length).map(Number));

const margin = 40;  // above the first row and below the last one, for the prism's ends
const mostBeams = 6000;
const inset = 9;    // of the points from the canvas's edges

// Where things are: `rows` maps a word to its row, or to −1 when it is folded away.
const geometry = {width: 0, height: 0, row: 24, rows: []};
const yOf = word => margin + (geometry.rows[word] + 0.5) * geometry.row;

const prism = () => {
  const {width, height} = geometry;
  const top = 6;
  const bottom = height - 6;
  const half = y => Math.min(0.17 * width, 0.42 * height) * (y - top) / (bottom - top);
  const middle = 0.31 * width;
  return {top, bottom, left: y => middle - half(y), right: y => middle + half(y)};
};

const spread = (head, room) => heads === 1 ? 0 : (head / (heads - 1) - 0.5) * room;
const tip = 14;  // a beam gathers on its last few dots

// A cone of light from a to b, `from` and `to` wide, that meets in the point.
const cone = (pen, ax, ay, bx, by, from, to) => {
  const slope = (by - ay) / (bx - ax);
  const cx = Math.max(bx - tip - 2 * to, (ax + bx) / 2);
  const cy = ay + slope * (cx - ax);
  pen.beginPath();
  pen.moveTo(ax, ay - from / 2);
  pen.lineTo(cx, cy - to / 2);
  pen.lineTo(bx, by - 0.3);
  pen.lineTo(bx, by + 0.3);
  pen.lineTo(cx, cy + to / 2);
  pen.lineTo(ax, ay + from / 2);
  pen.closePath();
  pen.fill();
};

// The same as far as the glass goes: it widens.
const fan = (pen, ax, ay, bx, by, to) => {
  pen.beginPath();
  pen.moveTo(ax, ay);
  pen.lineTo(bx, by - to / 2);
  pen.lineTo(bx, by + to / 2);
  pen.closePath();
  pen.fill();
};

const line = (pen, ax, ay, bx, by) => {
  pen.beginPath();
  pen.moveTo(ax, ay);
  pen.lineTo(bx, by);
  pen.stroke();
};

const drawPrism = (pen, glass) => {
  const {top, bottom, left, right} = glass;
  const fill = pen.createLinearGradient(left(bottom), 0, right(bottom), 0);
  const tint = isDark() ? '200,215,255' : '40,60,110';
  fill.addColorStop(0, `rgba(${tint},${isDark() ? 0.13 : 0.07})`);
  fill.addColorStop(0.55, `rgba(${tint},0.03)`);
  fill.addColorStop(1, `rgba(${tint},${isDark() ? 0.16 : 0.09})`);
  pen.beginPath();
  pen.moveTo(left(top), top);
  pen.lineTo(right(bottom), bottom);
  pen.lineTo(left(bottom), bottom);
  pen.closePath();
  pen.fillStyle = fill;
  pen.fill();
  pen.lineWidth = 1;
  pen.strokeStyle = `rgba(${tint},${isDark() ? 0.42 : 0.32})`;
  pen.stroke();
};

// A word alone in focus spreads its colours further than its row.
const roomOf = () => Math.min(geometry.row, 32);
const exitRoom = (word, focus) => focus !== null && word === focus.from ? Math.max(roomOf(), 72) : 0.86 * roomOf();
const exitOf = (word, head, focus) => yOf(word) + spread(head, exitRoom(word, focus));

// The white ray of a word, and its colours on their way through the glass.
const drawRay = (pen, word, glass, focus, brightness) => {
  const y = yOf(word);
  const white = isDark() ? '255,255,255' : '38,42,56';
  if (isDark()) {
    pen.strokeStyle = `rgba(${white},${0.1 * brightness})`;
    pen.lineWidth = 6;
    line(pen, inset, y, glass.left(y), y);
  }
  pen.strokeStyle = `rgba(${white},${0.9 * brightness})`;
  pen.lineWidth = 1.4;
  line(pen, inset, y, glass.left(y), y);
  const strand = exitRoom(word, focus) / heads;
  for (let head = 0; head < heads; ++head) {
    if (!showsHead(head)) continue;
    pen.fillStyle = colourOf(head);
    pen.globalAlpha = 0.75 * brightness;
    fan(pen, glass.left(y), y, glass.right(y), exitOf(word, head, focus), Math.max(0.8, 0.7 * strand));
  }
  pen.globalAlpha = 1;
};

const drawBeam = (pen, beam, glass, focus) => {
  const exit = exitOf(beam.from, beam.head, focus);
  const ax = glass.right(yOf(beam.from));
  const bx = geometry.width - inset;
  const by = yOf(beam.to) + spread(beam.head, 0.3 * roomOf());
  const size = Math.min(1, geometry.row / 22);
  const dim = words[beam.to].special || words[beam.from].special ? 0.3 : 1;
  const alpha = (focus === null ? 0.85 * beam.weight ** 0.8 : beam.weight ** 0.65) * dim;
  pen.fillStyle = colourOf(beam.head);
  pen.strokeStyle = colourOf(beam.head);
  const width = size * (focus === null ? 0.7 + 5.5 * beam.weight : 1 + 8 * beam.weight);
  if (dashes[beam.head].length > 0) {
    pen.globalAlpha = Math.min(1, 0.85 * alpha);
    pen.lineWidth = Math.max(0.8, 0.6 * width);
    pen.setLineDash(dashes[beam.head]);
    line(pen, ax, exit, bx, by);
    pen.setLineDash([]);
    return;
  }
  if (beam.weight > 0.08) {
    pen.globalAlpha = 0.16 * alpha;
    cone(pen, ax, exit, bx, by, 2.5 * size, 3.2 * width + 3);
  }
  pen.globalAlpha = Math.min(1, 0.85 * alpha);
  cone(pen, ax, exit, bx, by, 0.9 * size, width);
};

const drawPoints = (pen, stays, lit) => {
  const received = new Float64Array(words.length);
  for (const beam of layerOf(shown.layer).beams) if (showsHead(beam.head)) received[beam.to] += beam.weight;
  const most = Math.max(...received, 1e-9);
  words.forEach((word, at) => {
    if (!stays[at]) return;
    pen.globalAlpha = lit === null || lit.has(at) ? 1 : 0.35;
    pen.fillStyle = isDark() ? '#fff' : '#262a38';
    const size = Math.min(1, geometry.row / 24);
    for (const [x, radius] of [[inset, 2.6], [geometry.width - inset, 1.4 + 3.4 * Math.sqrt(received[at] / most)]]) {
      pen.beginPath();
      pen.arc(x, yOf(at), size * radius, 0, 7);
      pen.fill();
    }
  });
  pen.globalAlpha = 1;
};

// Canvases have a largest side, so a long picture gets fewer dots.
const prepare = canvas => {
  const wanted = printing || paper.matches ? 3 : devicePixelRatio || 1;
  const scale = Math.min(wanted, 16000 / Math.max(geometry.width, geometry.height, 1));
  canvas.width = Math.round(geometry.width * scale);
  canvas.height = Math.round(geometry.height * scale);
  canvas.style.width = `${geometry.width}px`;
  canvas.style.height = `${geometry.height}px`;
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, geometry.width, geometry.height);
  return pen;
};

// All beams that `focus` lights, on one canvas. Returns how many there are, drawn or not.
const drawLight = (canvas, focus, stays) => {
  const pen = prepare(canvas);
  const glass = prism();
  // The brightest come last; more than these nobody can tell apart.
  const all = visibleBeams().filter(beam => isLit(beam, focus) && stays[beam.from] && stays[beam.to]);
  const beams = all.slice(-mostBeams);
  const touched = focus === null ? null : new Set();
  const rays = new Set(focus === null ? words.keys() : []);
  for (const beam of beams) {
    rays.add(beam.from);
    touched?.add(beam.from).add(beam.to);
  }
  drawPrism(pen, glass);
  pen.globalCompositeOperation = isDark() ? 'screen' : 'source-over';
  // Many rays are dim, a few are bright.
  const crowd = focus === null ? Math.max(0.3, Math.min(1, 6 / rays.size)) : 1;
  for (const word of rays) {
    if (stays[word]) drawRay(pen, word, glass, focus, focus === null ? Math.max(crowd, 0.45) : word === focus.from ? 1 : 0.35);
  }
  for (const beam of beams) drawBeam(pen, beam, glass, focus);
  pen.globalAlpha = 1;
  pen.globalCompositeOperation = 'source-over';
  drawPoints(pen, stays, touched);
  return all.length;
};
