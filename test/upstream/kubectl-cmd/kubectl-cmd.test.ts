import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startInstance } from '#test/integration/kcp-instance.ts'
import { readLists } from '#test/upstream/lists.ts'
import { prepare } from './prepare.ts'
import { failureOf, runFunction, type RunOptions } from './run-functions.ts'
import { adapted, betweenFunctions, functionsOf } from './working-copy.ts'

/** Fast ones among those listed as passing that have found defects; `make conformance` runs all. */
const quick = [
  'run_assert_categories_tests',
  'run_authorization_tests',
  'run_configmap_tests',
  'run_deprecated_api_tests',
  'run_kubectl_create_error_tests',
  'run_kubectl_delete_allnamespaces_tests',
]

describe("Kubernetes' shell tests of kubectl", () => {
  const adaptation = { server: 'https://h:1/clusters/a', token: 't', serviceIp: '10.96.0.1', tmp: '/copy/tmp' }

  it('are each listed once', () => {
    const { passing, notPassing } = readLists(import.meta.dirname)
    expect(passing).to.include.members(quick)
    expect([...passing].sort()).to.deep.equal(passing)
    for (const { reason } of notPassing) expect(reason).to.not.equal('')
  })

  it("are found in upstream's order", () => {
    const script = '  record_command run_a_tests\n# record_command run_b\n    record_command run_c_test\n'
    expect(functionsOf(script)).to.deep.equal(['run_a_tests', 'run_c_test', betweenFunctions])
  })

  it('get another address, token, Service range and folder', () => {
    const script =
      "curl -H 'Bearer admin-token' https://localhost:${SECURE_API_PORT}/a > /tmp/x; cat ${TMPDIR:-/tmp}/y # 10.0.0.12"
    expect(adapted(script, adaptation)).to.equal(
      "curl -H 'Bearer t' https://h:1/clusters/a/a > /copy/tmp/x; cat ${TMPDIR:-/tmp}/y # 10.96.0.12",
    )
  })

  it('report the failed assertion first', () => {
    const lines = ['a', 'b', 'c', 'd', '\u001b[31mFAIL!', 'Expected: 1', 'Got: 2']
    expect(failureOf(lines.join('\n'))).to.equal('b\nc\nd\nFAIL!\nExpected: 1\nGot: 2')
    expect(failureOf('a\n\nthe end')).to.equal('a\nthe end')
  })

  describe('a few of them in a logical cluster', function () {
    this.timeout(10 * 60_000)
    const stack = new AsyncDisposableStack()
    let options: RunOptions
    before(async () => {
      const kcp = stack.use(await startInstance())
      const { kubeconfig } = await kcp.tenant('test-cmd', { podSecurity: 'privileged' })
      const dir = mkdtempSync(join(tmpdir(), 'kcp-test-cmd-'))
      stack.defer(() => rmSync(dir, { recursive: true, force: true }))
      options = await prepare(kubeconfig, {
        dir: join(dir, 'copy'),
        logDir: join(dir, 'log'),
        timeoutSeconds: 240,
        programs: ['kubectl'],
        signal: new AbortController().signal,
      })
    })
    after(() => stack.disposeAsync())

    for (const name of quick)
      it(name, async () => {
        const { passed, message } = await runFunction(name, options)
        expect(passed, message).to.equal(true)
      })
  })
})
