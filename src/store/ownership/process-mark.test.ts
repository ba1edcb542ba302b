import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { hasEnded, processMark } from './process-mark.ts'

describe('the mark of a process', () => {
  it('shows that a process of this machine has ended once it has', async () => {
    const file = new URL('process-mark.ts', import.meta.url).href
    const program = `import { processMark } from ${JSON.stringify(file)}; console.log(processMark()); setInterval(() => 0, 1e6)`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed] = (await once(child.stdout, 'data')) as [Buffer]
    const mark = printed.toString().trim()
    expect(mark).to.match(/boot=\S+ ns=\S+ pid=[0-9]+ start=[0-9]+$/)
    expect(hasEnded(mark)).to.equal(false)
    child.kill('SIGSTOP')
    expect(hasEnded(mark)).to.equal(false)
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(hasEnded(mark)).to.equal(true)
  })

  it('never shows that this process has ended, nor one of which nothing is known', () => {
    for (const mark of [processMark(), '', 'pid=1', 'boot=other ns=x pid=1 start=1', 'garbage'])
      expect(hasEnded(mark), mark).to.equal(false)
  })

  it('never shows that a process has ended whose own mark, or ours, lacks a part', () => {
    const own = 'pod=a boot=1 ns=2 pid=1 start=5'
    const before = 'pod=a boot=1 ns=3 pid=1 start=5'
    expect(hasEnded(before, own)).to.equal(true)
    for (const part of ['boot=1 ', 'ns=2 ']) expect(hasEnded(before, own.replace(part, '')), part).to.equal(false)
    for (const part of ['boot=1 ', 'ns=3 ']) expect(hasEnded(before.replace(part, ''), own), part).to.equal(false)
  })

  it('never shows that a process has ended because no file can be opened', async () => {
    const file = new URL('process-mark.ts', import.meta.url).href
    const program = `import { openSync } from 'node:fs'
      import { hasEnded, processMark } from ${JSON.stringify(file)}
      const own = processMark()
      const parent = own.replace(/pid=[0-9]+ start=[0-9]+/, 'pid=' + process.ppid + ' start=${startOf(process.pid)}')
      const gone = own.replace(/pid=[0-9]+/, 'pid=2147483647')
      const before = hasEnded(parent)
      let code
      while (code === undefined) try { openSync('/dev/null') } catch (error) { code = error.code }
      console.log(JSON.stringify([code, before, hasEnded(parent), hasEnded(gone), processMark() === own]))`
    const script = 'ulimit -n 100; exec "$0" --input-type=module --eval "$1"'
    const child = spawn('sh', ['-c', script, process.execPath, program], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [printed] = (await once(child.stdout, 'data')) as [Buffer]
    expect(JSON.parse(printed.toString())).to.deep.equal(['EMFILE', false, false, true, true])
  })

  it('shows that the container before this one has ended in the same pod, and nothing about other pods', () => {
    const own = processMark({ podUid: 'a' })
    expect(hasEnded('pod=a boot=1 ns=2 pid=1 start=5', own)).to.equal(true)
    expect(hasEnded('pod=b boot=1 ns=2 pid=1 start=5', own)).to.equal(false)
    expect(hasEnded('pod=a ns=2 pid=1 start=5', own)).to.equal(false)
    expect(hasEnded(processMark({ podUid: '' }).replace(/start=[0-9]+/, 'start=1'), own)).to.equal(false)
  })

  it('shows of another process of the same container whether it has ended', () => {
    const own = processMark({ podUid: 'a' })
    const parent = `pid=${process.ppid} start=${startOf(process.ppid)}`
    const sibling = own.replace(/pid=[0-9]+ start=[0-9]+/, parent)
    expect(sibling).to.contain(parent)
    expect(hasEnded(sibling, own)).to.equal(false)
    expect(hasEnded(sibling.replace(/start=[0-9]+/, 'start=1'), own)).to.equal(true)
  })
})

/** When a process began, as its stat file says. */
function startOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}
