// Compares two trees by programs that share no code with the mover: find, sha256sum, getfattr where it is installed.
import { execFileSync, spawnSync } from 'node:child_process'

const read = (cwd: string, program: string, args: readonly string[]): string =>
  execFileSync(program, args, { cwd, encoding: 'latin1', maxBuffer: 1 << 30, env: { ...process.env, LC_ALL: 'C' } })

/** Lines, one for each entry, ended by NUL: kind, mode, owner, size, time, link; content of files; inodes as groups. */
function listing(root: string): string[] {
  const all = ['.', '-mindepth', '0']
  const format = '%p %y %m %U:%G %T@ %l\\0'
  const entries = read(root, 'find', [...all, '-not', '-path', './lost+found*', '-printf', format]).split('\0')
  const sizes = read(root, 'find', [...all, '-type', 'f', '-printf', '%p size %s links %n\\0']).split('\0')
  const hashes = read(root, 'find', [...all, '-type', 'f', '-exec', 'sha256sum', '-z', '{}', '+']).split('\0')
  const devices = read(root, 'find', [
    ...all,
    '(',
    '-type',
    'c',
    '-o',
    '-type',
    'b',
    ')',
    '-exec',
    'stat',
    '-c',
    '%n %t:%T',
    '{}',
    '+',
  ])
  return [...entries, ...sizes, ...hashes, ...devices.split('\n'), ...linkGroups(root), ...attributes(root)]
    .filter((line) => line !== '')
    .sort()
}

/** Names of one inode, as a line. */
function linkGroups(root: string): string[] {
  const groups = new Map<string, string[]>()
  const lines = read(root, 'find', ['.', '-not', '-type', 'd', '-links', '+1', '-printf', '%i %p\\0']).split('\0')
  for (const line of lines.filter((each) => each !== '')) {
    const space = line.indexOf(' ')
    const inode = line.slice(0, space)
    groups.set(inode, [...(groups.get(inode) ?? []), line.slice(space + 1)])
  }
  return [...groups.values()].map((names) => `one inode: ${names.sort().join('\0')}`)
}

const hasGetfattr = spawnSync('getfattr', ['--version']).status === 0

function attributes(root: string): string[] {
  if (!hasGetfattr) return []
  const text = read(root, 'getfattr', ['-R', '-h', '-P', '-d', '-m', '-', '-e', 'hex', '.'])
  return text.split('\n\n')
}

/** What differs, at most 20 lines with the side that has each. */
export function differences(a: string, b: string): string[] {
  const [left, right] = [listing(a), listing(b)]
  const [inLeft, inRight] = [new Set(left), new Set(right)]
  return [
    ...left.filter((line) => !inRight.has(line)).map((line) => `source: ${line}`),
    ...right.filter((line) => !inLeft.has(line)).map((line) => `target: ${line}`),
  ].slice(0, 20)
}
