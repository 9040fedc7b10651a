/* As much of a document as the drawings need, to test them without a browser. */

class Element {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], listeners: {}, style: {}, parentElement: null, dataset: {} });
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  removeAttribute(name) { delete this.attributes[name]; }
  addEventListener(name, call) { this.listeners[name] = call; }
  append(...children) {
    for (const child of children) {
      if (child instanceof Element) child.parentElement = this;
      this.children.push(child);
    }
  }
  replaceChildren(...children) { this.children = []; this.append(...children); }
  get textContent() { return this.children.map((child) => (child instanceof Element ? child.textContent : String(child))).join(""); }
  set textContent(text) { this.children = [text]; }
  all(tag) { return this.children.flatMap((child) => (child instanceof Element ? [...(child.tag === tag ? [child] : []), ...child.all(tag)] : [])); }
  getContext() {
    return { measureText: (text) => ({ width: 7 * text.length }), createImageData: (w, h) => ({ data: new Uint8ClampedArray(4 * w * h) }), putImageData() {} };
  }
  toDataURL() { return "data:image/png;base64,"; }
  press(key) { this.listeners.keydown({ key, preventDefault() {} }); }
}

const root = new Element("html");
globalThis.document = { documentElement: root, createElement: (tag) => new Element(tag), createElementNS: (_, tag) => new Element(tag) };
globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => ` ${name} ` });

export const theme = (name) => { root.dataset.theme = name; };
