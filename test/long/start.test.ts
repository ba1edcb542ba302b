import { installWithoutHost } from '../e2e/installation.ts'
import { endLabAfterAll } from '../e2e/lab.ts'
import { defineStory } from '../e2e/story.ts'

endLabAfterAll()
defineStory('without a host: kcp start', installWithoutHost)
