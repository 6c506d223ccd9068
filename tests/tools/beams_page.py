#!/usr/bin/env python3
"""The page of `headlight beams` in a headless Chromium: pointed at, clicked, tapped, reached by keys, printed, without one
message on the console or one request for another file.

    tests/tools/beams_page.py build/release/headlight
"""
import array
import os
import re
import struct
import subprocess
import sys
import tempfile

from browser import Page

WORDS = "机器人 拿起 红色 的 积木 ， 因为 它 很 轻 <b>bold</b> </script><script>document.title='broken'</script>"


def write_npy(path, shape, rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for row in rows:
            file.write(row.tobytes())


def make(program, folder, words, layers, heads, kind="html", neighbours=0):
    """A page in which head h of layer l looks h + l words ahead with 0.75, at the first word with the rest; of that 0.15
    go to so many neighbours where there are to be some."""
    count = len(words.split())

    def rows():
        for layer in range(layers):
            for head in range(heads):
                for row in range(count):
                    weights = array.array("f", [0.0]) * count
                    weights[(row + head + layer) % count] += 0.75
                    weights[0] += 0.1 if neighbours > 0 else 0.25
                    for n in range(neighbours):
                        weights[(row + n) % count] += 0.15 / neighbours
                    yield weights

    attention = os.path.join(folder, "a.npy")
    out = os.path.join(folder, f"{count}_{layers}_{heads}.{kind}")
    write_npy(attention, (layers, heads, count, count), rows())
    subprocess.run([program, "beams", "--words", words, "--attention", attention, "-o", out, "--layer", "0"], check=True,
                   stdout=subprocess.DEVNULL)
    return out


def expect(condition, what):
    if not condition:
        raise SystemExit(f"beams_page: {what}")


def colours_on(page, canvas):
    """How many dots of a canvas are not empty. They are read from a copy: a canvas that is read again and again is slow."""
    return page.run(f"(() => {{ const c = document.getElementById('{canvas}'); const copy = new OffscreenCanvas(c.width, c.height);"
                    " const pen = copy.getContext('2d', {willReadFrequently: true}); pen.drawImage(c, 0, 0); const d ="
                    " pen.getImageData(0, 0, c.width, c.height).data; let n = 0;"
                    " for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n; })()")


def details(page):
    return page.run("document.getElementById('details').innerText")


PRESSED = "[...document.querySelectorAll('#heads button[data-head]')].map(b => b.getAttribute('aria-pressed')).join()"


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
    expect(page.run(PRESSED) == "false,false,true,false", "a head is not shown alone")
    page.click("#heads button[data-head='0']", modifiers=2)
    expect(page.run(PRESSED) == "true,false,true,false", "Ctrl does not add a head")
    page.click("#every-head")
    expect(page.run(PRESSED) == "true,true,true,true", "all heads do not come back")

    page.click("#layers label:nth-of-type(2)")
    page.hover("h1")
    expect("Layer 1" in details(page), "the layer does not change")


def tab_to(page, what):
    """Tab until `what` holds of the element in focus."""
    for _ in range(40):
        page.key("Tab")
        if page.run(f"(e => {what})(document.activeElement)"):
            return
    raise SystemExit(f"beams_page: Tab does not lead to an element with {what}")


def choose_by_keys(page, path):
    page.open(path)
    whole = colours_on(page, "all")
    tab_to(page, "e.name === 'layer'")
    page.key("ArrowRight")
    expect("Layer 1" in details(page), "the right arrow does not change the layer")
    page.key("ArrowLeft")
    expect("Layer 0" in details(page), "the left arrow does not change the layer back")
    for key in ("Enter", " "):
        tab_to(page, "e.dataset.head === '1'")
        page.key(key)
        expect(page.run(PRESSED) == "false,true,false,false", f"{key!r} does not show a head alone")
        expect(page.run("document.activeElement.dataset.head") == "1", "the head loses the focus")
        expect(colours_on(page, "all") < whole, "the other heads' beams are still drawn")
        page.key(key)
        expect(page.run(PRESSED) == "true,true,true,true", f"{key!r} does not bring all heads back")
        page.open(path)


def use_keys(page, path):
    page.open(path)
    tab_to(page, "e.classList.contains('word')")
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


def shows(page, selector):
    return page.run(f"document.querySelector({selector!r}).getClientRects().length") > 0


def change_light(page, path):
    page.open(path, dark=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    first = "[colourOf(0), data.colours.light[0], data.colours.dark[0]].join()"
    night_ground, night_colour = page.run(ground), page.run(first).split(",")
    expect(night_colour[0] == night_colour[2] != night_colour[1], "colours for dark ground are not drawn on it")
    page.click("#heads button[data-head='1']")
    page.media(kind="print", dark=True)
    colour, on_light, _ = page.run(first).split(",")
    expect(page.run(ground) == "rgb(255, 255, 255)" != night_ground, "paper is not white")
    expect(colour == on_light, "paper has the colours of dark ground")
    for kept in ("h1", "#heads button[data-head='1']", "#layers label:nth-of-type(1)", "#all", "#details", "footer p"):
        expect(shows(page, kept), f"{kept} is not printed")
    for gone in ("#options", "#every-head", "#heads button[data-head='0']", "#layers label:nth-of-type(2)", "footer p + p"):
        expect(not shows(page, gone), f"{gone} is printed, and nobody can use it on paper")
    expect(colours_on(page, "all") > 5000, "no beams are printed")
    page.click("#heads button[data-head='1']")
    page.media(dark=False)
    page.media(kind="print")
    with tempfile.TemporaryDirectory() as folder:
        page.pdf(os.path.join(folder, "x.pdf"))
        expect(os.path.getsize(os.path.join(folder, "x.pdf")) > 20000, "nothing was printed")


def show_whole_lines_of_the_heading(page, path):
    """A heading of several lines: the letters of the last one shown are whole, also where more lines are left out."""
    for width in (1280, 500):
        page.open(path, width=width)
        below = page.run("(() => { const h = document.querySelector('h1').getBoundingClientRect();"
                         "const lines = [...document.querySelector('h1 bdi').getClientRects()].filter(r => r.top + r.bottom < 2 * h.bottom);"
                         "return [lines.length, Math.max(...lines.map(r => r.bottom)) - h.bottom, h.top - lines[0].top]; })()")
        expect(below[0] > 1 and below[1] <= 0 and below[2] <= 0, f"the heading of {below[0]} lines is cut at width {width}: {below}")


def stay_usable(page, path):
    page.open(path)
    rows = "[...document.querySelectorAll('#from li')].filter(e => !e.hidden).length"
    expect(page.run(rows) <= 42, "a long text is not folded")
    page.click("#fold")
    expect(page.run(rows) == 512, "folded words do not come back")
    page.hover("#to li:nth-child(200) button")
    expect("is looked at by" in details(page), "a word far below is not lit")


def fold_around_the_ends(page, path):
    """300 words between [CLS] and [SEP]: folded, both stay while their box is ticked, and what is told adds up."""
    page.open(path)
    shown = "[...document.querySelectorAll('#from li')].filter(e => !e.hidden).map(e => e.innerText.trim())"
    folded = "document.getElementById('folded').innerText"

    def adds_up(all_words):
        names = page.run(shown)
        expect(page.run(folded) == f"{all_words - len(names)} of {all_words} words are folded away.", f"{len(names)} shown: {page.run(folded)!r}")
        return names

    names = adds_up(302)
    expect(names[0] == "[CLS]" and names[-1] == "[SEP]", f"the ends are folded away though they are ticked: {names}")
    page.click("#specials")
    expect("[CLS]" not in adds_up(300), "[CLS] stays though it is not ticked")
    page.click("#fold")
    expect(len(page.run(shown)) == 300 and page.run("document.getElementById('folded').hidden"), "what is not ticked counts as folded away")


def stay_usable_with_many_heads(page, path):
    """512 words, two layers of twelve heads: the page stays small, folds, and says what it leaves out."""
    expect(os.path.getsize(path) < 4 << 20, f"the page has {os.path.getsize(path)} bytes")
    page.open(path)
    expect("The 8 brightest beams of each word and head are here" in page.run("document.body.innerText"), "no top 8")
    rows = "[...document.querySelectorAll('#from li')].filter(e => !e.hidden).length"
    hint = "document.getElementById('dimmest').textContent"
    expect(page.run(rows) <= 42 and "are folded away" in page.run("document.getElementById('folded').innerText"), "no fold")
    expect(page.run(hint) == "", "few beams are drawn, and the page says that some are missing")
    page.click("#layers label:nth-of-type(2)")
    page.hover("h1")
    expect("Layer 1" in details(page) and colours_on(page, "all") > 5000, "the second layer is not drawn")
    page.click("#fold")
    expect(page.run(rows) == 512, "folded words do not come back")
    expect(re.match(r"the 6,000 brightest of 1\d,\d{3} beams; with fewer heads", page.run(hint)), f"what is left out: {page.run(hint)!r}")
    page.click("#heads button[data-head='11']")
    page.hover("h1")
    expect(page.run(hint) == "", "one head alone is all drawn")
    page.hover("#from li:nth-child(300) button")
    expect("looks at" in details(page), "a word far below is not lit")
    wide = page.run("document.documentElement.scrollWidth")
    expect(wide <= 1280, f"the page must be scrolled sideways: {wide}")


def tell_heads_apart(page, path):
    lines = "[...document.querySelectorAll('#heads button[data-head]')].map(b => getComputedStyle(b).backgroundImage)"
    page.open(path)
    expect(page.run(f"new Set({lines}).size") == 48, "two of 48 heads look the same")
    page.run("window.scrollTo(0, document.body.scrollHeight)")
    page.hover("#from li:nth-child(2) button")
    heading = "document.querySelector('#details h2').getBoundingClientRect().top"
    expect(page.run(f"{heading} >= document.querySelector('form').getBoundingClientRect().bottom"), "three rows of heads hide a word")


def tell_apart(page, path):
    page.open(path)
    page.hover("#from li:nth-child(4) button")
    expect("animal#2" in details(page) and "animal#1" in details(page), "two words of one text look the same")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder, Page() as page:
        path = make(program, folder, WORDS, 2, 4)
        for part in (look_around, choose_by_keys, use_keys, use_fingers, change_light):
            part(page, path)
        long_path = make(program, folder, " ".join(f"w{n}" for n in range(512)), 1, 2)
        show_whole_lines_of_the_heading(page, long_path)
        stay_usable(page, long_path)
        ends_path = make(program, folder, " ".join(["[CLS]", *(f"w{n}" for n in range(300)), "[SEP]"]), 1, 4)
        fold_around_the_ends(page, ends_path)
        wide_path = make(program, folder, " ".join(f"w{n}" for n in range(512)), 2, 12, neighbours=12)
        stay_usable_with_many_heads(page, wide_path)
        many = make(program, folder, " ".join("abcdefghijklmnopqrst"), 1, 48)
        tell_heads_apart(page, many)
        twice = make(program, folder, "red animal chased animal", 1, 3)
        tell_apart(page, twice)
        still = make(program, folder, WORDS, 1, 4, "svg")
        page.open(still)
        expect(page.run("document.documentElement.tagName") == "svg", "the still picture is no SVG")
        expect(page.run("document.querySelectorAll('script, parsererror').length") == 0, "a word became markup in the SVG")
        expect(page.run("[...document.querySelectorAll('text')].some(e => e.textContent === '机器人')"), "text is not text")
        expect(not page.problems, f"the console says {page.problems}")
        ours = {f"file://{one}" for one in (path, long_path, ends_path, wide_path, many, twice, still)}
        expect(set(page.requests) <= ours, f"the page asks for {set(page.requests) - ours}")
    print("The page of beams holds in Chromium.")


if __name__ == "__main__":
    main()
