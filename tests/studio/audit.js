/* Run in the page by test_access.py: what a person who does not see well, or uses no mouse, would miss. */
const problems = [];
const visible = (node) => node.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true });
const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + 0.05) / (low + 0.05); };
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const found = parse(getComputedStyle(at).backgroundColor);
    if (found.length === 3 || found[3] === 1) return found;
  }
  return [255, 255, 255];
};
const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) problems.push(`two elements are called ${id}`);
for (const node of document.querySelectorAll("[aria-controls], [aria-labelledby], label[for]")) {
  for (const name of ["aria-controls", "aria-labelledby", "for"]) {
    const id = node.getAttribute(name);
    if (id && !document.getElementById(id)) problems.push(`${name} names ${id}, which is not there`);
  }
}
for (const node of document.querySelectorAll("[aria-selected]")) if (node.getAttribute("role") !== "tab") problems.push(`aria-selected on ${node.tagName} without a role`);
for (const svg of document.querySelectorAll("svg")) {
  if (!svg.getAttribute("aria-label")) problems.push("a drawing without a name");
  if (svg.getAttribute("role") === "img" && svg.querySelector("[tabindex], [role=button]")) problems.push(`buttons inside the picture ${svg.ariaLabel}`);
}
for (const box of document.querySelectorAll(".drawing, .scrolls, #views")) {
  const wide = visible(box) && box.scrollWidth > box.clientWidth + 1;
  if (wide && !box.matches("[tabindex]") && !box.querySelector("[tabindex], button")) problems.push(`${box.className} scrolls, and no key reaches it`);
}
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !visible(node) || node.closest("svg, .spoken, .wide, :disabled, noscript, script, option")) continue;
  const found = contrast(parse(getComputedStyle(node).color), ground(node));
  if (found < 4.5) problems.push(`contrast ${found.toFixed(1)}: ${texts.currentNode.data.trim().slice(0, 40)}`);
}
return problems;
