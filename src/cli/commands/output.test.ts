// What commands print of texts that others have written.
import { expect } from 'chai'
import { columns, nameOf, printable } from './output.ts'

describe('the output of commands', () => {
  it('has one line for a row, and no control characters for the terminal', () => {
    const evil = 'a\u001b]0;title\u0007\u009b2J\nacme   forged'
    const text = columns([
      ['NAME', 'WHY'],
      ['web', evil],
    ])
    expect(text.trimEnd().split('\n')).to.have.length(2)

    expect(text).not.to.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
    expect(printable('plain, ünïcode\nnext')).to.equal('plain, ünïcode\nnext')
  })

  it('names objects as kubectl does', () => {
    expect(nameOf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } })).to.equal('pod/a')
    expect(nameOf({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' } })).to.equal('deployment.apps/a')
  })
})
