"""Bugs planted on purpose, by somebody who had not seen the battery: (what, file, old text, new text)."""

BUGS = [
    (
        "strict mode: own noise levels are ignored if a reward released at the same time came without one",
        "bandits/state.py",
        """        if not any(levels):  # levels are positive
""",
        """        if not all(levels):  # levels are positive
""",
    ),
    (
        "tell with several choices is no longer all or nothing: an error or interrupt leaves the first ones told",
        "bandits/base.py",
        """        told = parse_told(self.state, choice, reward, sigma)
        self.state = self.state.holding(*told) if self.strict else self.state.told(*told)
        return self
""",
        """        choices, rewards, levels = parse_told(self.state, choice, reward, sigma)
        for i, each in enumerate(choices):
            told = [each], rewards[i : i + 1], levels[i : i + 1]
            self.state = self.state.holding(*told) if self.strict else self.state.told(*told)
        return self
""",
    ),
    (
        "loading forgets that the assumptions were once refuted, unless the data still refute them",
        "bandits/stored.py",
        """        refuted=stored["refuted"],
""",
        """        refuted=fresh.moment.is_refuted,
""",
    ),
    (
        "copies and what-ifs share the buffer of rows: what one learns overwrites what the other has learnt",
        "data.py",
        """        if buffer is not None and buffer.used == waiting:
""",
        """        if buffer is not None and waiting < len(buffer.rows):
""",
    ),
    (
        "intervals (of choices, tuners, running intersections) forget misspecification where no range is stated",
        "sequences/response.py",
        """        if self.range is None and not self.deviation:
            return Interval(minimum, maximum)
""",
        """        if self.range is None:
            return Interval(minimum, maximum)
""",
    ),
    (
        "learning an existing run overwrites the first values of the tuner's history instead of following them",
        "tuning/tuner.py",
        """            kept = persistent.put(kept, self.told + i, Told(dict(parameters), number))
""",
        """            kept = persistent.put(kept, i, Told(dict(parameters), number))
""",
    ),
    (
        "completed rows without a value are dropped from the count of rows left out if other states are left out too",
        "tuning/selection.py",
        """        {**left_out, **without},
""",
        """        left_out or without,
""",
    ),
    (
        "a file that exists is overwritten in place: a crash in the middle leaves neither the old nor the new one",
        "_files.py",
        """    if known is not None and not stat.S_ISREG(known.st_mode):
        path.write_bytes(data)
""",
        """    if known is not None:  # in place: permissions, owner and links stay
        path.write_bytes(data)
""",
    ),
    (
        "a stored array where one of several words belongs raises numpy's ValueError, not DamagedState",
        "_schema.py",
        """        if not isinstance(value, str | int) or value not in choices:
""",
        """        if value not in choices:
""",
    ),
    (
        "the sampler crashes the study if finished trials have no usable value and no other trial has one yet",
        "integrations/optuna/trials.py",
        """        poor = np.quantile(rewards, _POOR) if rewards else 0.0
""",
        """        poor = np.quantile(rewards, _POOR)
""",
    ),
    (
        "NaN passes for a number that is 0 or positive: misspecification, exploration, gap, rtol, stored costs",
        "_checks.py",
        """    if not 0 <= number <= most:
""",
        """    if number < 0 or number > most:
""",
    ),
    (
        "tidy does not read again what another process has added since: its rows are lost",
        "paper/store.py",
        """            if self.path.exists():
                self.rows = self._read() | self.rows
""",
        """            if not self.rows and self.path.exists():
                self.rows = self._read()
""",
    ),
]
