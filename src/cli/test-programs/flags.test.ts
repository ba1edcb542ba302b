import { expect } from 'chai'
import { listOf, parseFlags, usageOf, valueOf } from './flags.ts'

describe('flags of the programs for test suites', () => {
  it('are read in every form', () => {
    const flags = parseFlags(['--a=1', '--b', '2', '--c', '--a=x=y', '-v', 'word', '--list=p,q', '--list=r'])
    expect(valueOf(flags, 'a')).to.equal('x=y')
    expect(valueOf(flags, 'b')).to.equal('2')
    expect(valueOf(flags, 'c')).to.equal('true')
    expect(valueOf(flags, 'd')).to.equal(undefined)
    expect(listOf(flags, 'list')).to.deep.equal(['p', 'q', 'r'])
  })

  it('stand at the beginnings of lines, where envtest searches', () => {
    const usage = usageOf('etcd', 'About.', { 'unsafe-no-fsync': 'text' })
    expect(/^\s*--unsafe-no-fsync\b/m.test(usage)).to.equal(true)
    expect(/^\s*--insecure-port\b/m.test(usage)).to.equal(false)
  })
})
