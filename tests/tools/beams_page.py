#!/usr/bin/env python3
"""The page of `headlight beams` in a headless Chromium: pointed at, clicked, tapped, reached by keys, printed, without one
message on the console or one request for another file.

    tests/tools/beams_page.py build/release/headlight
"""
import os
import struct
import subprocess
import sys
import tempfile

from browser import Page

WORDS = "机器人 拿起 红色 的 积木 ， 因为 它 很 轻 <b>bold</b> </script><script>document.title='broken'</script>"


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def make(program, folder, words, layers, heads, kind="html"):
    """A page in which head h of layer l looks h + l words ahead with 0.75, at the first word with the rest."""
    count = len(words.split())
    values = []
    for layer in range(layers):
        for head in range(heads):
            for row in range(count):
                weights = [0.0] * count
                weights[(row + head + layer) % count] += 0.75
                weights[0] += 0.25
                values += weights
    array = os.path.join(folder, "a.npy")
    out = os.path.join(folder, f"{count}.{kind}")
    write_npy(array, (layers, heads, count, count), values)
    subprocess.run([program, "beams", "--words", words, "--attention", array, "-o", out, "--layer", "0"], check=True,
                   stdout=subprocess.DEVNULL)
    return out


def expect(condition, what):
    if not condition:
        raise SystemExit(f"beams_page: {what}")


def colours_on(page, canvas):
    """How many dots of a canvas are not empty."""
    return page.run(f"(() => {{ const c = document.getElementById('{canvas}'); const d = c.getContext('2d').getImageData(0, 0,"
                    " c.width, c.height).data; let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n; })()")


def details(page):
    return page.run("document.getElementById('details').innerText")


def look_around(page, path):
    page.open(path)
    expect(page.run("document.title").startswith("机器人"), "the title is not the sentence")
    expect(page.run("document.querySelectorAll('b, img').length") == 0, "a word became markup")
    expect(page.run("document.querySelector('#from li:nth-child(11) .label').textContent") == "<b>bold</b>", "a word was lost")
    expect(page.run("document.querySelector('#from li:nth-child(8) .label').lang") == "zh", "Chinese is not marked as such")
    expect(colours_on(page, "all") > 5000, "no beams were drawn")

    page.hover("#from li:nth-child(8) button")
    expect("它" in details(page) and "looks at" in details(page), "pointing at a word does not show it")
    expect(not page.run("document.getElementById('lit').hidden") and colours_on(page, "lit") > 1000, "its light is not drawn")
    page.hover("h1")
    expect("Layer 0" in details(page), "the pointer is gone and the word is still lit")

    page.click("#from li:nth-child(8) button")
    page.hover("h1")
    expect("它" in details(page), "a click does not keep the word lit")
    page.key("Escape")
    expect("Layer 0" in details(page), "Escape does not let go")

    page.click("#heads button[data-head='2']")
    page.hover("h1")
    pressed = "[...document.querySelectorAll('#heads button[data-head]')].map(b => b.getAttribute('aria-pressed')).join()"
    expect(page.run(pressed) == "false,false,true,false", "a head is not shown alone")
    page.click("#heads button[data-head='0']", modifiers=2)
    expect(page.run(pressed) == "true,false,true,false", "Ctrl does not add a head")
    page.click("#every-head")
    expect(page.run(pressed) == "true,true,true,true", "all heads do not come back")

    page.click("#layers label:nth-of-type(2)")
    page.hover("h1")
    expect("Layer 1" in details(page), "the layer does not change")


def use_keys(page, path):
    page.open(path)
    for _ in range(40):
        page.key("Tab")
        if page.run("document.activeElement.classList.contains('word')"):
            break
    where = "[document.activeElement.closest('ol').id, document.activeElement.innerText.trim()].join(' ')"
    expect(page.run(where) == "from 机器人", "Tab does not lead to the words")
    expect("机器人" in details(page), "the word in focus is not lit")
    page.key("ArrowDown")
    page.key("ArrowRight")
    expect(page.run(where) == "to 拿起", "arrow keys do not lead on")
    page.key("Enter")
    expect(page.run("document.activeElement.getAttribute('aria-pressed')") == "true", "Enter does not keep the word lit")


def use_fingers(page, path):
    page.open(path, width=390, touch=True)
    page.tap("#from li:nth-child(3) button")
    expect("红色" in details(page), "a tap does not show the word")
    wide = page.run("document.documentElement.scrollWidth")
    expect(wide <= 390, f"a telephone must scroll sideways: {wide}")


def change_light(page, path):
    page.open(path, dark=True)
    page.media(dark=False)
    page.media(kind="print")
    with tempfile.TemporaryDirectory() as folder:
        page.pdf(os.path.join(folder, "x.pdf"))
        expect(os.path.getsize(os.path.join(folder, "x.pdf")) > 20000, "nothing was printed")


def stay_usable(page, path):
    page.open(path)
    rows = "[...document.querySelectorAll('#from li')].filter(e => !e.hidden).length"
    expect(page.run(rows) <= 42, "a long text is not folded")
    page.click("#fold")
    expect(page.run(rows) == 512, "folded words do not come back")
    page.hover("#to li:nth-child(200) button")
    expect("is looked at by" in details(page), "a word far below is not lit")


def tell_apart(page, path):
    page.open(path)
    page.hover("#from li:nth-child(4) button")
    expect("animal#2" in details(page) and "animal#1" in details(page), "two words of one text look the same")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, Page() as page:
        path = make(program, folder, WORDS, 2, 4)
        for part in (look_around, use_keys, use_fingers, change_light):
            part(page, path)
        long_path = make(program, folder, " ".join(f"w{n}" for n in range(512)), 1, 2)
        stay_usable(page, long_path)
        twice = make(program, folder, "red animal chased animal", 1, 3)
        tell_apart(page, twice)
        still = make(program, folder, WORDS, 1, 4, "svg")
        page.open(still)
        expect(page.run("document.documentElement.tagName") == "svg", "the still picture is no SVG")
        expect(page.run("document.querySelectorAll('script, parsererror').length") == 0, "a word became markup in the SVG")
        expect(page.run("[...document.querySelectorAll('text')].some(e => e.textContent === '机器人')"), "text is not text")
        expect(not page.problems, f"the console says {page.problems}")
        ours = {f"file://{one}" for one in (path, long_path, twice, still)}
        expect(set(page.requests) <= ours, f"the page asks for {set(page.requests) - ours}")
    print("The page of beams holds in Chromium.")


if __name__ == "__main__":
    main()
