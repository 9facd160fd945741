#!/usr/bin/env python3
"""Merges slivers into the file that they belong to.

Run once from the root of the checkout: slivers.py TABLE. A line of the table is
TARGET <- SOURCE… (stems without extensions): the sources' headers become TARGET.h, their .cc files
TARGET.cc, in the order in which they include each other; the file comment is that of the source
named like the target, else of the first; the others' comments go before their part. A line
TARGET.cc <- SOURCE… moves all of the sources, which nothing else uses, into the unnamed namespace
of TARGET.cc. Then every #include and every mention of an old path in the tree follows.
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
            if line.startswith('}  // namespace'):
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


DECLARATION = re.compile(r'(?:// .*\n)*(?:[A-Za-z][^\n{]*\b(\w+)\([^{;]*\));(?:\n|$)', re.M)


def with_comments(header, body):
    """(header without its declarations of functions, body with their comments at the definitions)"""
    def take(match):
        nonlocal body
        text, name = match.group(0), match.group(1)
        comment = ''.join(l + '\n' for l in text.split('\n') if l.startswith('//'))
        found = re.search(r'^[A-Za-z][^\n;]*\b' + name + r'\(', body, re.M)
        assert found and ' = ' not in text.split('(', 1)[1], text
        body = body[:found.start()] + comment + body[found.start():]
        return ''
    out = '\n\n'.join(take_all(chunk, take) for chunk in header.split('\n\n'))
    return re.sub(r'\n{3,}', '\n\n', out).strip('\n'), body


def take_all(chunk, take):
    lines = chunk.split('\n')
    whole = not any(l.startswith((' ', '}', 'class', 'struct', 'inline', 'template')) and '{' in l
                    for l in lines) and not chunk.startswith((' ', '}'))
    return DECLARATION.sub(take, chunk) if whole else chunk


def unmarked(body):
    return re.sub(r'^(namespace \{|\}  // namespace)\n+', '', body + '\n', flags=re.M).strip('\n')


def take_in(target, sources):
    """The sources, header and all, into the unnamed namespace of TARGET.cc."""
    goal = target + '.cc'
    host = Part(goal)
    texts, includes = [], list(host.includes)
    for stem in sources:
        header = Part(stem + '.h')
        source = Part(stem + '.cc') if os.path.exists(stem + '.cc') else None
        declared, body = with_comments(header.body, source.body if source else '')
        text = '\n\n'.join(x for x in (declared, unmarked(body)) if x)
        texts.append('\n'.join(header.comment) + '\n\n' + text)
        includes += header.includes + (source.includes if source else [])
        for part in (header, source):
            if part:
                assert part.namespace == host.namespace and not part.after, part.path
                includes += part.before
                subprocess.check_call(['git', 'rm', '-q', '-f', part.path])
    gone = {f'#include "{s}.h"' for s in sources}
    body = host.body
    if not body.startswith('namespace {\n'):
        body = 'namespace {\n\n}  // namespace\n\n' + body
    body = body.replace('namespace {\n', 'namespace {\n\n' + '\n\n'.join(texts) + '\n', 1)
    comment = '\n'.join(host.comment) + '\n' if host.comment else ''
    text = [comment + blocks([i for i in includes if i not in gone], f'#include "{target}.h"')]
    text += ['\n'.join(host.before)] if host.before else []
    text += [f'namespace {host.namespace} {{', body, f'}}  // namespace {host.namespace}']
    text += ['\n'.join(host.after)] if host.after else []
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
        if target.endswith('.cc'):
            take_in(target[:-3], sources)
            continue
        for extension in EXTENSIONS:
            merge(target, sources, extension)
    rewrite({t.removesuffix('.cc'): sources for t, sources in table.items()})


main()
