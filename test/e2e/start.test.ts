import { installWithoutHost } from './installation.ts'
import { endLabAfterAll } from './lab.ts'
import { defineStory } from './story.ts'

endLabAfterAll()
defineStory('without a host: kcp start', installWithoutHost)
