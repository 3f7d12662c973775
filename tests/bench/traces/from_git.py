#!/usr/bin/env python3
"""Derives visits of files from a git history, for `efimd-bench returns`: numbers only, no names and no text.

usage: from_git.py REPOSITORY [--author NAME] [--source TEXT] >trace.csv

The commits of one author, oldest first: each file of source text that one changes is a visit. A line is a commit, as
seconds,file,tokens,file,tokens,... Files are numbered as they come and keep their number when they are renamed; tokens
are bytes / 4. A file that was visited last is not visited again. Commits of more than kFilesMax files are left out,
because nobody visits so many. Only the newest kCommitsMax commits are kept, so that a trace stays small.
"""
import argparse
import pathlib
import subprocess

kFilesMax = 50
kCommitsMax = 900
kBytesMin = 64
kSource = set("c cc cmake comp cpp css cu cuh cxx glsl go h hh hpp html java js json kt lua m md metal mjs mm py rs sh swift "
              "tcl toml ts txt vim yaml yml zig".split())


def git(repository, *arguments, feed=None):
    return subprocess.run(["git", "-C", repository, *arguments], input=feed, capture_output=True, text=True,
                          errors="replace", check=True).stdout


def commits_of(repository, author):
    """(time, [(status, blob, paths)]) of each commit, oldest first."""
    log = git(repository, "log", "--no-merges", "--raw", "--no-abbrev", "-M", "--format=@%at",
              *([f"--author={author}"] if author else []))
    commits = []
    for line in log.splitlines():
        if line.startswith("@"):
            commits.append((int(line[1:]), []))
        elif line.startswith(":"):
            facts, *paths = line.split("\t")
            blob, status = facts.split()[3:5]
            commits[-1][1].append((status[0], blob, paths))
    return sorted(reversed(commits), key=lambda commit: commit[0])


def sizes_of(repository, blobs):
    listed = git(repository, "cat-file", "--batch-check", feed="\n".join(blobs))
    return {words[0]: int(words[2]) for words in map(str.split, listed.splitlines()) if len(words) == 3}


def visits_of(commits, sizes):
    """(time, [(path's number, tokens)]) of each commit that visits something."""
    numbers, last = {}, None
    for time, changes in commits:
        visits = []
        for status, blob, paths in changes if len(changes) <= kFilesMax else []:
            if status == "R" and paths[0] in numbers:
                numbers[paths[1]] = numbers.pop(paths[0])
            name = pathlib.PurePosixPath(paths[-1])
            source = name.suffix[1:] in kSource or name.name == "Makefile"
            if status == "D" or not source or sizes.get(blob, 0) < kBytesMin:
                continue
            number = numbers.setdefault(paths[-1], len(numbers) + 1)
            if number != last:
                visits.append((number, sizes[blob] // 4))
            last = number
        if visits:
            yield time, visits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("repository")
    parser.add_argument("--author", default="")
    parser.add_argument("--source", default="", help="what the trace is of, for its first line")
    arguments = parser.parse_args()
    commits = commits_of(arguments.repository, arguments.author)
    sizes = sizes_of(arguments.repository, sorted({blob for _, changes in commits for _, blob, _ in changes}))
    kept = list(visits_of(commits, sizes))[-kCommitsMax:]
    numbers = {}
    print(f"# {arguments.source or 'visits'}: derived from commits by tests/bench/traces/from_git.py")
    for time, visits in kept:
        cells = [time - kept[0][0]]
        for number, tokens in visits:
            cells += [numbers.setdefault(number, len(numbers) + 1), tokens]
        print(",".join(map(str, cells)))


if __name__ == "__main__":
    main()
