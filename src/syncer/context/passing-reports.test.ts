import { expect } from 'chai'
import { PassingReports } from './passing-reports.ts'

describe('a report that will soon be replaced', () => {
  let now = 1000
  const reports = new PassingReports({ monotonic: () => now })

  it('waits for a moment from its first change, however often it changes', () => {
    expect(reports.wait('web')).to.equal(200)
    now += 150
    expect(reports.wait('web')).to.equal(50)
    now += 50
    expect(reports.wait('web')).to.equal(undefined)
    expect(reports.wait('web')).to.equal(200)
  })
  it('waits anew when one was written meanwhile', () => {
    reports.forget('web')
    expect(reports.wait('web')).to.equal(200)
    expect(reports.wait('other')).to.equal(200)
  })
  it('is forgotten a minute later if its object was deleted, but not while somebody still asks', () => {
    reports.wait('gone')
    now += 60_200
    expect(reports.wait('other')).to.equal(undefined)
    expect(reports.wait('new')).to.equal(200)
    expect(reports.size).to.equal(1)
  })
})
