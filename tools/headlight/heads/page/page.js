'use strict';
const data = JSON.parse(document.getElementById('data').textContent);

// The matrix: a cell under the pointer, or under arrow keys, says which heads it is of.
{
  const svg = document.querySelector('#matrix svg');
  const cursor = document.getElementById('cursor');
  const output = document.querySelector('#matrix output');
  const count = data.layers * data.heads;
  const name = (head) => `head ${head % data.heads} of layer ${Math.floor(head / data.heads)}`;
  let row = 0, column = 0;
  const show = (r, c) => {
    row = Math.min(count - 1, Math.max(0, r));
    column = Math.min(count - 1, Math.max(0, c));
    cursor.setAttribute('x', column);
    cursor.setAttribute('y', row);
    cursor.style.visibility = 'visible';
    const value = data.cka[row * count + column];
    const lines = [`${name(row)}${data.kinds[row] ? ` (${data.kinds[row]})` : ''}`,
                   `${name(column)}${data.kinds[column] ? ` (${data.kinds[column]})` : ''}`,
                   value === null ? 'CKA undefined' : `CKA ${(value / 1000).toFixed(2)}`];
    output.replaceChildren(...lines.map((line) => {
      const paragraph = document.createElement('div');
      paragraph.textContent = line;
      return paragraph;
    }));
  };
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const view = svg.viewBox.baseVal;
    show(Math.floor(view.y + (event.clientY - box.top) / box.height * view.height),
         Math.floor(view.x + (event.clientX - box.left) / box.width * view.width));
  });
  svg.addEventListener('focus', () => show(row, column));
  svg.addEventListener('keydown', (event) => {
    const steps = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [-count, -count], End: [count, count]};
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    show(row + step[0], column + step[1]);
  });
}

// The table: a click on a heading sorts by it, another one the other way round.
for (const button of document.querySelectorAll('th button')) {
  button.addEventListener('click', () => {
    const heading = button.parentElement;
    const body = heading.closest('table').tBodies[0];
    const column = heading.cellIndex;
    const upwards = heading.getAttribute('aria-sort') === 'descending' || (!heading.hasAttribute('aria-sort') && column < 2);
    const value = (line) => line.cells[column].dataset.value;
    const ordered = (a, b) => {
      const x = value(a), y = value(b);
      if (x === '' || y === '') return (x === '') - (y === '');  // undefined ones last, either way
      const difference = column === 1 ? x.localeCompare(y) : x - y;
      return upwards ? difference : -difference;
    };
    for (const other of heading.parentElement.cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', upwards ? 'ascending' : 'descending');
    body.append(...[...body.rows].sort(ordered));
  });
}
