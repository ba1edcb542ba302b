import { expect } from 'chai'
import { codeLabel, verbLabel } from './request-labels.ts'

describe('the labels of metrics of requests', () => {
  it('name what Kubernetes knows', () => {
    expect(verbLabel('deletecollection')).to.equal('deletecollection')
    expect(codeLabel(409)).to.equal('409')
  })
  it('are few, whatever clients and pods send', () => {
    const labels = new Set(Array.from({ length: 900 }, (_, index) => codeLabel(100 + index)))
    expect(labels.size).to.be.at.most(40)
    expect(verbLabel('PROPFIND')).to.equal('other')
    expect(verbLabel(undefined)).to.equal('other')
  })
})
