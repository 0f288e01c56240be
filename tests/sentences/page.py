"""The text of `kvfair show`, taken apart: headline, tables, lines below them, sentences."""

import re

WIDTH = 100
# The first heading of what each server used.
SERVERS = "server, in its first trial"
# A line that begins so begins a paragraph.
STARTS = re.compile(
    r"data: |the answer|answers: |about: |warning \(|(more|slower|too slow for a first look|not here) \(--wide\)|"
    r"next[,:] |no room for: |No claim: |Single times |"
    r"vs best compares |apart, |left out: |Together: |Set/get alone says |(crash|power|none): |versions in their order|"
    r"\d+ % of \S+( \w+)? is waiting |From .+ (no step|a step|CPU)|\S+: .*(enough|seen to help)")


class Table:
    """Heading cells, rows of cells, and the words that stand above the rows."""

    def __init__(self, title, heading):
        self.title, self.rows = title, []
        self.unread = []
        self.heading = [(match[0], match.end()) for match in re.finditer(r"\S+(?: \S+)*", heading)]
        # Left of this stand ranks, names and steps, from where their headings begin.
        names = [name for name, _ in self.heading]
        place = names.index("target") if "target" in names else 0
        self.left = self.heading[place][1] - (0 if names[place] == SERVERS else len(names[place]))

    def cells(self, line):
        """The cells of a line by the number of their column: cells end where their headings end. What ends nowhere is
        in `unread` of the table."""
        found = {}
        for match in re.finditer(r"\S+(?: \S+)*", line):
            ends = [place for place, (_, end) in enumerate(self.heading) if end == match.end()]
            if ends and match.start() > 1:
                found[ends[0]] = match[0]
            elif match.start() > self.left:
                self.unread.append(match[0])
        return found


# What a durability level costs, below what it is of.
LEVEL = re.compile(r"  (crash|power|none): ")

# What stands below a table begins so.
NOTES = (" * ", " without a star", " requests were sent in", " no room for: ")
FIRST_CELLS = ("rank ", "target ", "clients ", "per second ", "version ", "times as fast ", "times less CPU ", SERVERS)


def is_heading(line):
    return any(line.startswith(" " + cell) for cell in FIRST_CELLS)


class Page:
    def __init__(self, text):
        self.tables, self.flow, self.notes = [], [], []
        lines = text.split("\n")
        self.width = 80 if any(line.startswith(" times ") for line in lines) else WIDTH
        place = next((place for place, line in enumerate(lines) if line.startswith(" ")), len(lines))
        head = lines[:place]
        # The answer stands above the headline, whose parts have dots between them.
        parted = next((place for place, line in enumerate(head) if " · " in line), 0)
        parted = parted if parted and head[parted - 1].endswith(".") else 0
        self.answer, head = " ".join(head[:parted]), head[parted:]
        # Where a table of levers follows, a sentence stands above it.
        lever = next((place for place, line in enumerate(head) if re.match(r"\S+: .*(enough|help|needed)", line)
                      and " · " not in line), len(head))
        self.headline = " ".join(head[:lever])
        self.lines(head[lever:] + lines[place:])

    def lines(self, lines):
        title, table, previous, notes = "", None, "", False
        for place, line in enumerate(lines):
            if not line.strip():
                table, previous = None, ""
            elif is_heading(line):
                # A table that is too wide goes on below with the same title.
                goes_on = self.tables and SERVERS not in line
                table = Table(title or (self.tables[-1].title if goes_on else ""), line)
                self.tables.append(table)
                title = ""
            elif re.match(r" \S", line) and "  " not in line.strip() and \
                    re.match(r" (clients|per second) ", "".join(lines[place + 1:place + 2])):
                title = line.strip()
            elif LEVEL.match(line):
                self.flow.append(line.strip())
            elif line.startswith("    ") and table is None and self.flow and LEVEL.match("  " + self.flow[-1]):
                self.flow[-1] += " " + line.strip()
            elif line.startswith(" ") and table is not None and not line.startswith(NOTES):
                table.rows.append(line)
            elif line.startswith(" "):
                table = None
                if re.match(r" {2,}", line) and self.notes:
                    self.notes[-1] += "\n" + line.strip()
                else:
                    self.notes.append(line.strip())
            else:
                table, notes, title = None, True, ""
                fits = len(previous) + 1 + len(line.split(" ")[0]) <= self.width
                if previous and not fits and not STARTS.match(line):
                    self.flow[-1] += " " + line
                else:
                    self.flow.append(line)
                previous = line
                continue
            previous = ""

    def sentences(self):
        """Each sentence of the answer and of the text below the tables, without its last full stop."""
        for paragraph in [self.answer] * bool(self.answer) + self.flow:
            if re.match(r"(data|warning|answers|the answer|next|more|no room|left out|about)\b", paragraph):
                yield paragraph.rstrip(":")
                continue
            for sentence in re.split(r"\. (?=\S)", paragraph.rstrip()):
                yield sentence.rstrip(".").rstrip(":") if not sentence.endswith("...") else sentence
