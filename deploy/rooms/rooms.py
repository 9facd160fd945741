#!/usr/bin/env python3
"""Moves source files into rooms by concept, and merges slivers into the file they belong to.

Run once from the root of the checkout: rooms.py TABLE. A line of the table is
TARGET <- SOURCE… (stems without extensions): the sources' headers become TARGET.h, their .cc files
TARGET.cc, in the order in which they include each other; the file comment is that of the source
named like the target, else of the first; the others' comments go before their part. Then every
#include and every mention of an old path in the tree follows.
"""
import collections
import os
import re
import subprocess
import sys

EXTENSIONS = ('h', 'cc', 'c')


def read_table(path):
    table = collections.OrderedDict()
    for line in open(path):
        line = line.split('#')[0].strip()
        if line:
            target, sources = line.split('<-')
            table[target.strip()] = sources.split()
    return table


class Part:
    """One file taken apart: comment, includes, what stands around the namespace, and its body."""

    def __init__(self, path):
        self.path = path
        lines = open(path).read().split('\n')
        self.comment = []
        at = 0
        while at < len(lines) and lines[at].startswith('//'):
            self.comment.append(lines[at])
            at += 1
        # A comment that touches the code belongs to it.
        if at < len(lines) and lines[at].strip() and not lines[at].startswith('#'):
            at = 0
            self.comment = []
        self.includes = []
        self.before = []
        opened = None
        while at < len(lines):
            match = re.match(r'namespace (shirabe[\w:]*) \{$', lines[at])
            if match and not self.is_forward(lines, at):
                opened = match.group(1)
                break
            if lines[at].startswith('#include'):
                self.includes.append(lines[at])
            elif lines[at].strip() and lines[at] != '#pragma once':
                self.before.append(lines[at])
            at += 1
        assert opened, path
        self.namespace = opened
        end = max(i for i, l in enumerate(lines) if l == '}  // namespace ' + opened)
        self.body = '\n'.join(lines[at + 1:end]).strip('\n')
        self.after = [l for l in lines[end + 1:] if l.strip()]

    @staticmethod
    def is_forward(lines, at):
        """A namespace block that only declares classes of somebody else."""
        for line in lines[at + 1:]:
            if line.startswith('}'):
                return True
            if line.strip() and not re.match(r'(class|struct) \w+;$', line):
                return False
        return False


def blocks(includes, own):
    """Own header; <*.h>; other <…>; the rest."""
    includes = sorted(set(includes))
    out = []
    if own and own in includes:
        out.append([own])
        includes.remove(own)
    out.append([i for i in includes if re.match(r'#include <.*\.h>', i)])
    out.append([i for i in includes if re.match(r'#include <', i) and not re.match(r'#include <.*\.h>', i)])
    out.append([i for i in includes if i.startswith('#include "')])
    return '\n\n'.join('\n'.join(b) for b in out if b)


def order(parts, extension):
    """Those that others include come first."""
    by_header = {p.path.rsplit('.', 1)[0]: p for p in parts}
    seen, out = set(), []

    def visit(part):
        if part.path in seen:
            return
        seen.add(part.path)
        for include in part.includes:
            match = re.match(r'#include "(.*)\.h"', include)
            if match and match.group(1) in by_header and by_header[match.group(1)] is not part:
                visit(by_header[match.group(1)])
        out.append(part)

    for part in parts:
        visit(part)
    return out


def merge(target, sources, extension):
    paths = [f'{s}.{extension}' for s in sources if os.path.exists(f'{s}.{extension}')]
    if not paths:
        return
    goal = f'{target}.{extension}'
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    if len(paths) == 1:
        if paths[0] != goal:
            subprocess.check_call(['git', 'mv', paths[0], goal])
        return
    parts = [Part(p) for p in paths]
    name = os.path.basename(target)
    primary = next((p for p in parts if os.path.basename(p.path).rsplit('.', 1)[0] == name), parts[0])
    assert len({p.namespace for p in parts}) == 1, paths
    stems = [s for s in sources]
    gone = {f'#include "{s}.h"' for s in stems}
    includes = [i for p in parts for i in p.includes if i not in gone]
    own = f'#include "{target}.h"'
    if extension == 'cc' and os.path.exists(target + '.h'):
        includes.append(own)
    head = '#pragma once\n\n' if extension == 'h' else ''
    comment = '\n'.join(primary.comment) + '\n' if primary.comment else ''
    text = [comment + head + blocks(includes, own)]
    for p in parts:
        if p.before:
            text.append('\n'.join(p.before))
    text.append(f'namespace {primary.namespace} {{')
    for p in order(parts, extension):
        if p is not primary and p.comment:
            text.append('\n'.join(p.comment))
        text.append(p.body)
    text.append(f'}}  // namespace {primary.namespace}')
    for p in parts:
        if p.after:
            text.append('\n'.join(p.after))
    if primary.path != goal:
        subprocess.check_call(['git', 'mv', '-f', primary.path, goal])
    for p in parts:
        if p is not primary:
            subprocess.check_call(['git', 'rm', '-q', '-f', p.path])
    open(goal, 'w').write('\n\n'.join(text) + '\n')


def tracked():
    out = subprocess.check_output(['git', 'ls-files'], text=True).split('\n')
    for path in out:
        if path and os.path.isfile(path) and not os.path.islink(path):
            if path.startswith('tests/testdata/') or path.startswith('tests/fuzz/corpus'):
                continue
            yield path


def resort(text, path):
    """Sorts and dedupes each block of our own includes."""
    def fix(match):
        lines = match.group(0).rstrip('\n').split('\n')
        return '\n'.join(sorted(set(lines))) + '\n'
    own = path.rsplit('.', 1)[0] + '.h'
    out = re.sub(r'(?:^#include "[^"\n]+"\n)+', fix, text, flags=re.M)
    # No file includes itself.
    if path.endswith('.h'):
        out = out.replace(f'#include "{own}"\n', '')
    return out


def rewrite(table):
    new = {s: t for t, sources in table.items() for s in sources if s != t}
    stems = sorted(new, key=len, reverse=True)
    pattern = re.compile(r'(?<![\w/.-])(' + '|'.join(map(re.escape, stems)) + r')(?![\w/-])')
    for path in tracked():
        try:
            text = open(path, encoding='utf-8').read()
        except UnicodeDecodeError:
            continue
        out = pattern.sub(lambda m: new[m.group(1)], text)
        if out != text and path.endswith(('.h', '.cc', '.c')):
            out = resort(out, path)
            stem = path.rsplit('.', 1)[0]
            if path.endswith('.cc'):  # its own header first, once
                own = f'#include "{stem}.h"\n'
                if out.count(own) > 1:
                    first = out.index(own)
                    out = out[:first + len(own)] + out[first + len(own):].replace(own, '')
        if out != text:
            open(path, 'w', encoding='utf-8').write(out)


def main():
    table = read_table(sys.argv[1])
    for target, sources in table.items():
        for extension in EXTENSIONS:
            merge(target, sources, extension)
    rewrite(table)


main()
