import { useEffect, useState } from 'react';

import { useTexts, type Texts } from '../texts/index.ts';

const SOON = 60;

function leftText(seconds: number, t: Texts): string {
  if (seconds < 90) return t.seconds(Math.ceil(seconds));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 90) return t.minutes(minutes, Math.floor(seconds % 60));
  return t.hours(Math.floor(minutes / 60), minutes % 60);
}

/** Counts down to the moment after which nothing can be decided. */
export function Countdown({ until }: { until: string }) {
  const t = useTexts();
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = (Date.parse(until) - now) / 1000;
  return (
    <time className={left < SOON ? 'countdown soon' : 'countdown'} dateTime={until}>
      {left > 0 ? t.expiresIn(leftText(left, t)) : t.expired}
    </time>
  );
}
