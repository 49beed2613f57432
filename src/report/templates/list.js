'use strict';
const list = document.getElementById('list');
const effects = JSON.parse(document.getElementById('data').textContent);
const make = (tag, text, name) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
};
const scroll = text => {
  const made = make('pre', text);
  made.tabIndex = 0;
  return made;
};
const fill = (fold, effect) => {
  if (fold.childElementCount > 1) return;
  fold.append(make('h3', effect.titles[0]), scroll(effect.request));
  if (effect.outcome) fold.append(make('h3', effect.titles[1]), scroll(effect.outcome));
};
const show = effect => {
  const fold = make('details', undefined, 'effect');
  fold.id = effect.id;
  const head = make('summary');
  head.append(make('code', effect.line), ` ${effect.time} `, make('b', effect.kind), ` ${effect.who} `, make('span', effect.brief, effect.class));
  fold.append(head);
  fold.addEventListener('toggle', () => fill(fold, effect));
  return fold;
};
const PART = 500;
let shown = 0;
const more = make('button');
const add = () => {
  list.append(...effects.slice(shown, shown + PART).map(show));
  shown += PART;
  more.textContent = `${Math.min(shown, effects.length)} / ${effects.length} …`;
  if (shown >= effects.length) more.remove();
};
more.addEventListener('click', add);
list.after(more);
add();
const reach = () => {
  const wanted = effects.findIndex(effect => `#${effect.id}` === location.hash);
  while (wanted >= shown && shown < effects.length) add();
  if (wanted >= 0) document.getElementById(effects[wanted].id).scrollIntoView();
};
addEventListener('hashchange', reach);
reach();
