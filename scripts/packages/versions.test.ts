import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { repositoryRoot } from '#test/support/index.ts'

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')

describe('the version of a release', () => {
  it('is the same in the package and in the chart', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    const chart = parse(read('charts/kcp/Chart.yaml')) as {
      version: string
      appVersion: string
      annotations: Readonly<Record<string, string>>
    }
    expect([chart.version, chart.appVersion]).to.deep.equal([version, `v${version}`])
    expect(chart.annotations['artifacthub.io/images']).to.contain(`image: kcp.dev/kcp:v${version}\n`)
  })
})
