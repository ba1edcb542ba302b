import { expect } from 'chai'
import { Command } from 'commander'
import { createMetrics, processTracer, silentLogger } from '#telemetry/index.ts'
import { openTracing, parseHost, parseWorkersTo, type TracingFlags, withTracingFlags } from './flags.ts'

function parsed(...args: string[]): TracingFlags {
  const command = withTracingFlags(new Command('kcp')).exitOverride()
  command.configureOutput({ writeErr: () => undefined })
  return command.parse(args, { from: 'user' }).opts()
}

const parts = { serviceName: 'kcp', metrics: createMetrics(), log: silentLogger }

describe('the flags for traces', () => {
  it('trace nothing by default', async () => {
    expect(parsed()).to.deep.equal({ tracingSamplingRatePerMillion: 0 })
    expect(await openTracing(parsed(), parts)).to.equal(undefined)
    expect(processTracer()).to.equal(undefined)
  })

  it('open the tracer of the process', async () => {
    await using opened = await openTracing(parsed('--tracing-endpoint', 'http://127.0.0.1:9'), parts)
    expect(opened).not.to.equal(undefined)
    expect(processTracer()).not.to.equal(undefined)
  })

  for (const [flag, value] of [
    ['--tracing-endpoint', 'collector:4317'],
    ['--tracing-endpoint', 'ftp://collector'],
    ['--tracing-endpoint', 'http://user:password@collector:4318'],
    ['--tracing-sampling-rate-per-million', '1000001'],
    ['--tracing-sampling-rate-per-million', '-1'],
    ['--tracing-sampling-rate-per-million', '0.5'],
    ['--tracing-sampling-rate-per-million', ''],
  ] as const)
    it(`refuse ${flag} ${JSON.stringify(value)}`, () => expect(() => parsed(`${flag}=${value}`)).to.throw('is invalid'))
})

describe('the value of --advertise-address', () => {
  for (const text of ['10.0.0.1', 'fd00::1', 'kcp.example.com', 'localhost', 'Host-1'])
    it(`may be ${text}`, () => expect(parseHost(text)).to.equal(text))
  for (const text of [
    '',
    'a b',
    'https://kcp.example.com',
    'kcp.example.com:6443',
    '10.0.0',
    '10.0.0.256',
    '-a',
    '[fd00::1]',
  ])
    it(`may not be "${text}"`, () => expect(() => parseHost(text)).to.throw('host name or an IP address'))
})

describe('the number of workers', () => {
  const MiB = 1024 * 1024
  it('must fit in the memory of the container, which auto does by itself', () => {
    expect(parseWorkersTo(64, 1024 * MiB)('4')).to.equal(4)
    expect(() => parseWorkersTo(64, 1024 * MiB)('5')).to.throw('has 1024 MiB, enough for 4')
    expect(parseWorkersTo(64, 300 * MiB)('auto')).to.equal(1)
    expect(parseWorkersTo(64, 100 * MiB)('1')).to.equal(1)
    expect(parseWorkersTo(64, Infinity)('64')).to.equal(64)
  })
})
