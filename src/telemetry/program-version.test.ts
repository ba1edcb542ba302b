import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { programVersion } from './program-version.ts'

describe('the version of the program', () => {
  it('equals the version in package.json', () => {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
    expect((JSON.parse(text) as { version: string }).version).to.equal(programVersion)
  })
})
