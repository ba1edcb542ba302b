import { expect } from 'chai'
import { createLogger, type LoggerOptions } from './log.ts'

describe('the log', () => {
  function lines(options: LoggerOptions, write: (log: ReturnType<typeof createLogger>) => void): string[] {
    const out: string[] = []
    write(createLogger({ ...options, destination: { write: (line) => out.push(line) } }))
    return out
  }

  it('writes one JSON object per line with the keys beside the message', () => {
    const [line] = lines({ format: 'json' }, (log) =>
      log.with({ gvr: 'pods' }).info('watch ended', { reason: 'closed' }),
    )
    expect(line?.endsWith('\n')).to.equal(true)
    expect(JSON.parse(line ?? '')).to.deep.include({
      level: 'info',
      message: 'watch ended',
      gvr: 'pods',
      reason: 'closed',
    })
  })
  it('keeps the message and the causes of an error', () => {
    const error = new Error('could not list', { cause: new Error('connection refused') })
    const [line] = lines({ format: 'json' }, (log) => log.error('list failed', { error }))
    const { error: told } = JSON.parse(line ?? '') as { error: { message: string; cause: { message: string } } }
    expect([told.message, told.cause.message]).to.deep.equal(['could not list', 'connection refused'])
  })
  it('writes short text on request, quoting values with spaces', () => {
    const [line] = lines({ format: 'text' }, (log) =>
      log.warn('slow', { path: '/a b', ms: 12, error: new Error('x y') }),
    )
    expect(line).to.match(/^\d\d:\d\d:\d\d\.\d{3} WARN {2}slow path="\/a b" ms=12 error="x y"\n$/)
  })
  it('omits messages below the level', () => {
    expect(lines({ level: 'warn', format: 'json' }, (log) => log.info('no'))).to.deep.equal([])
  })
})
