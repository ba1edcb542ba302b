import { expect } from 'chai'
import type { Pod } from '#simulation/cluster/objects.ts'
import { runScript, shellIn, type ShellWorld } from './shell.ts'

const container = { name: 'c', image: 'demo/web' }
const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-0' }, spec: { containers: [container] } }

const world: ShellWorld = {
  pod,
  container,
  environment: { COLOUR: 'dark blue', EMPTY: '' },
  files: new Map([
    ['/etc/app/a.txt', 'one\n'],
    ['/etc/app/sub/b.txt', 'two\n'],
  ]),
  fetch: (url) => (url === 'http://web' ? Promise.resolve('hello\n') : Promise.reject(new Error('no such host'))),
  signal: new AbortController().signal,
}

async function run(script: string): Promise<string> {
  const parts: string[] = []
  const { code } = await runScript(script, world, ({ out = '', err = '' }) => parts.push(out, err))
  return `${parts.join('')}[${code}]`
}

describe('the shell of a simulated container', () => {
  for (const [script, expected] of [
    ['echo a   b', 'a b\n[0]'],
    ["echo 'a   b' \"$COLOUR;\" '$COLOUR' ${COLOUR}", 'a   b dark blue; $COLOUR dark blue\n[0]'],
    ['false && echo no; echo yes', 'yes\n[0]'],
    ['false || echo yes', 'yes\n[0]'],
    ['true && exit 3; echo no', '[3]'],
    ['false; echo $?', '1\n[0]'],
    ['hostname\n\necho "x && y"', 'web-0\nx && y\n[0]'],
    ['ls /etc/app', 'a.txt\nsub\n[0]'],
    ['cat /etc/app/a.txt /etc/app/sub/b.txt', 'one\ntwo\n[0]'],
    ['cat /nope', "cat: can't open '/nope': No such file or directory\n[1]"],
    ['curl -s http://web', 'hello\n[0]'],
    ['wget -qO- other', 'no such host\n[7]'],
    ['constructor', 'sh: constructor: not found (this is a simulated container: "help" lists its commands)\n[127]'],
    ['', '[0]'],
  ] as const)
    it(`answers ${JSON.stringify(script)}`, async () => {
      expect(await run(script)).to.equal(expected)
    })

  it('knows when a shell is asked for', () => {
    expect(shellIn(['/bin/sh', '-c', 'ls'])).to.deep.equal({ script: 'ls' })
    expect(shellIn(['bash', '-lc', 'ls'])).to.deep.equal({ script: 'ls' })
    expect(shellIn(['sh'])).to.deep.equal({})
    expect(shellIn(['ls', '-c'])).to.equal(undefined)
  })

  it('reads a long script in time that grows with its length', async () => {
    const began = performance.now()
    await run(`echo ${'a"b c"'.repeat(5000)} && ${'x '.repeat(5000)}`)
    expect(performance.now() - began).to.be.lessThan(1000)
  })
})
