// Health of the process: /livez, /readyz, /healthz, in the format of kube-apiserver.
import { pageNotFound } from '../../apimachinery/status/index.ts'
import { textAnswer } from '../codec/answers.ts'
import type { Answer } from '../exchange/exchange.ts'
import type { EndpointParts } from './parts.ts'

const plainOk = { ...textAnswer('ok'), headers: { 'content-type': 'text/plain; charset=utf-8' } }

/** The health of the process: 200 or 500. `?verbose` lists the checks; `/readyz/NAME` runs one. Throws 404 for others. */
export function health(path: string, query: URLSearchParams, { notReady }: EndpointParts): Answer {
  const [, endpoint = '', check = ''] = path.split('/')
  const missing = endpoint === 'livez' ? undefined : notReady()
  const checks = new Map([['ping', true]])
  if (endpoint !== 'livez') checks.set('storage', missing === undefined)
  if (check !== '') {
    const passed = checks.get(check)
    if (passed === undefined) throw pageNotFound()
    return passed ? plainOk : textAnswer(`not ready: ${missing ?? check}\n`, 500)
  }
  if (missing === undefined && !query.has('verbose')) return textAnswer('ok')
  const lines = [...checks].map(([name, passed]) => (passed ? `[+]${name} ok` : `[-]${name} failed: ${missing ?? ''}`))
  const verdict = missing === undefined ? 'passed' : 'failed'
  return textAnswer(`${lines.join('\n')}\n${endpoint} check ${verdict}\n`, missing === undefined ? 200 : 500)
}
